"""What the program takes from its command line: the defaults of argparse's arguments and of absl's flags.

A default is one of two things that such a name may hold: what the command line says instead nobody knows."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.program.values import Api, Call, Item, Value, is_instance_of, known
from mpdoctor.source.interpreter.state.interpreter_state import State

_PARSERS = ("argparse.ArgumentParser", "configargparse.ArgumentParser", "configargparse.ArgParser")
_PARTS = ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser")
_PARSING = ("parse_args", "parse_known_args")
_DEFINING = ("DEFINE_string", "DEFINE_enum")
_FLAGS = ".flags.FLAGS."
_DEEPEST = 5


def remember_argument(state: State, call: Call) -> None:
    """`parser.add_argument("--policy", default="mixed_float16")` and `parser.set_defaults(policy=…)`"""
    parser = _parser_of(call.receiver) if call.method in ("add_argument", "set_defaults") else None
    if parser is None:
        return
    given = call.keywords if call.method == "set_defaults" else ((_name_of(call), call.keyword("default")),)
    for name, default in given:
        if isinstance(known(default), str) and name and known(call.keyword("required")) is not True:
            assert default is not None
            held = state.attributes.get(id(parser))
            if held is None:
                held = state.walk.side_effects.created({})
                state.walk.side_effects.set(state.attributes, id(parser), held)
            state.walk.side_effects.set(held, name, default)


def remember_flag(state: State, call: Call) -> None:
    """`flags.DEFINE_string("policy", "mixed_float16", …)`"""
    name = known(call.argument(0, "name")) if _defines_flag(call) else None
    default = call.argument(1, "default")
    if isinstance(name, str) and isinstance(known(default), str):
        assert default is not None
        state.walk.side_effects.set(state.flags, name, default)


def default_of_argument(state: State, of: Value, name: str, location: Location) -> Value | None:
    """Of `args.policy`, and of `POLICY.value` where a flag was kept under a name of its own."""
    if isinstance(of, Call) and name == "value" and _defines_flag(of):
        default = of.argument(1, "default")
        return default if isinstance(known(default), str) else None
    parsed = of.of if isinstance(of, Item) and known(of.index) == 0 else of
    if not isinstance(parsed, Call) or parsed.method not in _PARSING:
        return None
    parser = _parser_of(parsed.receiver)
    return None if parser is None else state.attributes.get(id(parser), {}).get(name)


def default_of_flag(state: State, value: Value) -> Value | None:
    """Of `FLAGS.policy`"""
    if not state.flags or not isinstance(value, Api) or _FLAGS not in value.name:
        return None
    return state.flags.get(value.name.partition(_FLAGS)[2])


def _defines_flag(call: Call) -> bool:
    name = call.callee.name if isinstance(call.callee, Api) else ""
    return name.endswith(_DEFINING) and ".flags." in name


def _parser_of(value: Value | None) -> Value | None:
    """The parser itself, where arguments are added to a group or to a command of it."""
    for _ in range(_DEEPEST):
        if is_instance_of(value, *_PARSERS):
            return value
        if not isinstance(value, Call) or value.method not in _PARTS:
            return None
        value = value.receiver
    return None


def _name_of(call: Call) -> str:
    """Under which name `parse_args()` gives an argument."""
    written = known(call.keyword("dest"))
    names = [text for text in map(known, call.args) if isinstance(text, str)]
    long = [text for text in names if text.startswith("--")]
    first = (written,) if isinstance(written, str) else (*long, *names)
    return first[0].lstrip("-").replace("-", "_") if first else ""
