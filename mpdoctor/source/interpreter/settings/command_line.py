"""What the program takes from its command line: the defaults of argparse's arguments and of absl's flags, and those of
variables of the environment.

A default is one of two things that such a name may hold: what is said instead nobody knows."""

from __future__ import annotations

from mpdoctor.facts.half_dtypes import MIXED
from mpdoctor.facts.location import Location
from mpdoctor.program.command_line import (
    ENVIRONMENT,
    FLAGS,
    defines_flag,
    is_command_of_typer,
    is_option_of_click,
    is_text_or_number,
    parsing_call,
)
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_instance_of
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Known, Value, is_api, known
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined

_PARSERS = ("argparse.ArgumentParser", "configargparse.ArgumentParser", "configargparse.ArgParser")
_PARTS = ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser")
_DEFINING = ("DEFINE_string", "DEFINE_enum", "DEFINE_integer", "DEFINE_float", "DEFINE_bool", "DEFINE_boolean")
_KEEPING_A_TEXT = ("click.Choice", "click.STRING")
_TYPED = ("typer.Option", "typer.Argument")
_DEEPEST = 5


def remember_argument(state: State, call: Call) -> None:
    """Remember the defaults of `parser.add_argument("--policy", default="mixed_float16")`, with the policies of mixed
    precision that it can be set to instead, and `parser.set_defaults(policy=…)`; of functions, of which each command
    sets its own (`set_defaults(func=train)`), all."""
    parser = _parser_of(call.receiver) if call.method in ("add_argument", "set_defaults") else None
    if parser is None:
        return
    given = call.keywords if call.method == "set_defaults" else ((_name_of(call), _default_of(call)),)
    for name, default in given:
        offered = _policies_offered(call.keyword("choices"), default) if _keeps_texts(call) else ()
        if not name or (known(call.keyword("required")) is True and not offered):
            continue
        if is_text_or_number(default) and _is_kept(call, default):
            assert default is not None
            const = call.keyword("const") if known(call.keyword("action")) == "store_const" else None
            default = joined((default, const)) if const is not None and is_text_or_number(const) else default
            _remember_default(state, parser, name, joined((default, *offered)))
        elif offered:
            _remember_default(state, parser, name, joined(offered))
        elif isinstance(default, Defined) and isinstance(default.of, FunctionFacts) and call.method == "set_defaults":
            before = state.attributes.get(id(parser), {}).get(name)
            _remember_default(state, parser, name, default if before is None else joined((before, default)))


def _default_of(call: Call) -> Value | None:
    """The default of an argument: of a flag without one the opposite of what it stores."""
    default, action = call.keyword("default"), known(call.keyword("action"))
    is_flag = default is None and action in ("store_true", "store_false")
    return Known(call.location, action == "store_false") if is_flag else default


def _remember_default(state: State, parser: Value, name: str, default: Value) -> None:
    held = state.attributes.get(id(parser))
    if held is None:
        held = state.walk.side_effects.created({})
        state.walk.side_effects.set(state.attributes, id(parser), held)
    state.walk.side_effects.set(held, name, default)


def keeps_functions(call: Call) -> bool:
    """Whether it is `parser.set_defaults(func=train)`, which calls none of these functions."""
    return call.method == "set_defaults" and _parser_of(call.receiver) is not None


def remember_flag(state: State, call: Call) -> None:
    """Remember the default of `flags.DEFINE_string("policy", "mixed_float16", …)`."""
    if not _defines_flag(call):
        return
    name, default = known(call.argument(0, "name")), _default_of_flag(call)
    if isinstance(name, str) and default is not None:
        state.walk.side_effects.set(state.flags, name, default)


def _default_of_flag(call: Call) -> Value | None:
    """The default of a flag of absl's, and the policies of mixed precision that it can be set to instead."""
    default = call.argument(1, "default")
    offered = _policies_offered(call.argument(2, "enum_values"), default) if call.method == "DEFINE_enum" else ()
    held = (default, *offered) if default is not None and is_text_or_number(default) else offered
    return joined(held) if held else None


def default_of_variable(call: Call) -> Value | None:
    """The default in `os.environ.get("POLICY", "mixed_float16")`"""
    default = call.argument(1, "default") if is_api(call.callee, *ENVIRONMENT) else None
    return default if is_text_or_number(default) else None


def default_of_argument(state: State, of: Value, name: str) -> Value | None:
    """The default of `args.policy`, or of `POLICY.value` where a flag has a name of its own."""
    if name == "value" and isinstance(of, Call) and _defines_flag(of):
        return _default_of_flag(of)
    parsed = parsing_call(of)
    parser = None if parsed is None else _parser_of(parsed.receiver)
    return None if parser is None else state.attributes.get(id(parser), {}).get(name)


def argument_written(state: State, of: Value, name: str) -> Value | None:
    """What the program itself has put into `args.policy`; None where it leaves that as the command line has it."""
    parsed = parsing_call(of)
    return None if parsed is None else state.attributes.get(id(parsed), {}).get(name)


def arguments_as_dictionary(state: State, args: tuple[Value, ...], location: Location) -> Collection | None:
    """`vars(parser.parse_args())`: the arguments that have a default, and what else there may be."""
    parsed = parsing_call(args[0]) if len(args) == 1 else None
    parser = None if parsed is None else _parser_of(parsed.receiver)
    if parser is None:
        return None
    defaults = state.attributes.get(id(parser), {})
    held = {name: joined((default, Attribute(location, args[0], name))) for name, default in defaults.items()}
    held |= state.attributes.get(id(parsed), {})
    return Collection(location, "dict", tuple(held.values()), tuple(Known(location, name) for name in held), open=True)


def defaults_of_command(facts: FunctionFacts) -> dict[str, Value]:
    """The parameters of a function that click, typer or fire calls with command-line arguments, with their defaults."""
    defaults: dict[str, Value] = {}
    is_command = bool(facts.run_by)
    for decorator in facts.decorators:
        if not isinstance(decorator, Call):
            continue
        default = _default_in_click(decorator)
        if default is not None:
            defaults[_name_in_click(decorator)] = default
        is_command = is_command or is_command_of_typer(decorator)
    for name, given in facts.defaults.items():
        is_option = isinstance(given, Call) and is_api(given.callee, *_TYPED)
        default = given.argument(0, "default") if isinstance(given, Call) and is_option else given
        if (is_option or is_command) and default is not None and is_text_or_number(default):
            defaults[name] = default
    return defaults


def _default_in_click(decorator: Call) -> Value | None:
    """The default of an option of click's, and the policies of mixed precision among its choices."""
    if not is_option_of_click(decorator):
        return None
    default, kind = decorator.keyword("default"), decorator.keyword("type")
    choice = kind if isinstance(kind, Call) and is_api(kind.callee, "click.Choice") else None
    offered = () if choice is None else _policies_offered(choice.argument(0, "choices"), default)
    is_default = is_text_or_number(default) and _is_kept(decorator, default)
    held = (default, *offered) if is_default else offered
    return joined(held) if held else None


def default_of_flag(state: State, value: Value) -> Value | None:
    """The default of `FLAGS.policy`."""
    if not isinstance(value, Api) or FLAGS not in value.name:
        return None
    return state.flags.get(value.name.partition(FLAGS)[2])


def _defines_flag(call: Call) -> bool:
    return defines_flag(call) and call.method in _DEFINING


def _is_kept(call: Call, default: Value | None) -> bool:
    """Whether a default stays as it is written: argparse hands a text, and no number, to the argument's `type`."""
    return not isinstance(known(default), str) or _keeps_texts(call)


def _keeps_texts(call: Call) -> bool:
    kind = call.keyword("type")
    return kind is None or is_api(kind.callee if isinstance(kind, Call) else kind, "builtins.str", *_KEEPING_A_TEXT)


def _parser_of(value: Value | None) -> Value | None:
    """The parser itself, where arguments are added to a group or to a command of it."""
    for _ in range(_DEEPEST):
        if is_instance_of(value, *_PARSERS):
            return value
        if not isinstance(value, Call) or value.method not in _PARTS:
            return None
        value = value.receiver
    return None


def _name_in_click(option: Call) -> str:
    """Under which name click hands an option over: the one without dashes, else the longest."""
    names = [text for text in map(known, option.args) if isinstance(text, str)]
    plain = [text for text in names if text.isidentifier()]
    return (plain or sorted(names, key=len)[-1:] or [""])[0].lstrip("-").replace("-", "_")


def _name_of(call: Call) -> str:
    """Under which name `parse_args()` gives an argument."""
    written = known(call.keyword("dest"))
    names = [text for text in map(known, call.args) if isinstance(text, str)]
    long = [text for text in names if text.startswith("--")]
    first = (written,) if isinstance(written, str) else (*long, *names)
    return first[0].lstrip("-").replace("-", "_") if first else ""


def _policies_offered(choices: Value | None, default: Value | None) -> tuple[Value, ...]:
    """Those among the choices of an option; () where one of them is its default, which is what it then stands for. A
    program that offers one is meant to train under it."""
    held = choices.items if isinstance(choices, Collection) and choices.kind in ("list", "tuple") else ()
    return () if known(default) in MIXED else tuple(choice for choice in held if known(choice) in MIXED)
