"""Values that the program takes from its command line, its environment or a file of settings, and their defaults."""

from __future__ import annotations

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_instance_of
from mpdoctor.program.user_definitions import FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, is_api, known, options

PARSING = ("parse_args", "parse_known_args", "parse_intermixed_args")
FLAGS = ".flags.FLAGS."
ENVIRONMENT = ("os.environ.get", "os.getenv")
_TOLD_FROM_OUTSIDE = ("sys.argv", "os.environ")
MERGED = "yacs.config.CfgNode.merge_from_file"
# What gives the settings that a file holds.
LOADING_SETTINGS = (
    MERGED,
    *("json.load", "json.loads", "yaml.safe_load", "yaml.load", "yaml.full_load", "yaml.unsafe_load"),
    *("tomllib.load", "tomllib.loads", "tomli.load", "tomli.loads", "toml.load", "toml.loads"),
    *("omegaconf.OmegaConf.load", "hydra.main"),
)
_OF_TEXTS = ("f-string", "+")
RUNNING_COMMANDS = ("fire.Fire", "typer.run")
_OPTIONS_OF_CLICK = ("click.option", "click.argument")
_MOST_NESTED = 6  # forty lines of `text += text` hold the first 2^40 times


def is_from_command_line(value: Value, depth: int = 0) -> bool:
    """Whether it is `args.lr` of what argparse gives, absl's `FLAGS.lr` and `LR.value`, `os.environ.get("LR")`,
    `sys.argv[1]`, what a file of settings says, `settings.get("lr", 0.1)`, a parameter of a function that click or
    typer calls, a text that is made of one of these, or what a table of the program holds for it."""
    if isinstance(value, Api):
        return FLAGS in value.name
    if isinstance(value, Item):
        if is_api(value.of, *_TOLD_FROM_OUTSIDE, *LOADING_SETTINGS):
            return True
        return isinstance(value.of, Collection) and value.index is not None and is_from_command_line(value.index, depth)
    if isinstance(value, Operation) and value.operator in _OF_TEXTS:
        parts = [part for part in value.operands if not isinstance(part, Known)]
        return depth < _MOST_NESTED and all(is_from_command_line(part, depth + 1) for part in parts)
    if isinstance(value, Call):
        return is_api(value.callee, *ENVIRONMENT) or default_of_setting(value) is not None
    if isinstance(value, Parameter):
        return value.function is not None and is_command(value.function)
    if not isinstance(value, Attribute):
        return False
    return parsing_call(value.of) is not None or (value.name == "value" and defines_flag(value.of))


def default_of_setting(call: Call) -> Value | None:
    """The default in `settings.get("policy", "mixed_float16")`, where the program does not write out the settings: they
    come from a file, or from whoever calls the function."""
    is_get = (
        isinstance(call.callee, Attribute) and call.callee.name == "get" and isinstance(known(call.argument(0)), str)
    )
    default = call.argument(1, "default") if is_get else None
    return default if is_text_or_number(default) else None


def is_command(function: FunctionFacts) -> bool:
    """Whether click, typer or fire calls it with what the command line says."""
    made = (decorator for decorator in function.decorators if isinstance(decorator, Call))
    is_decorated = any(is_option_of_click(decorator) or is_command_of_typer(decorator) for decorator in made)
    return is_decorated or bool(function.run_by)


def is_option_of_click(decorator: Call) -> bool:
    return is_api(decorator.callee, *_OPTIONS_OF_CLICK)


def is_command_of_typer(decorator: Call) -> bool:
    """Whether the decorator is `@app.command()` of a typer application."""
    return decorator.method == "command" and is_instance_of(decorator.receiver, "typer.Typer")


def is_text_or_number(default: Value | None) -> bool:
    """Whether it is a text, a number, True or False, and known."""
    return type(known(default)) in (str, int, float, bool)


def parsing_call(value: Value) -> Call | None:
    """The `parse_args()` whose result, or the first of whose results, a value is."""
    parsed = value.of if isinstance(value, Item) and known(value.index) == 0 else value
    return parsed if isinstance(parsed, Call) and parsed.method in PARSING else None


def defines_flag(value: Value) -> bool:
    name = value.callee.name if isinstance(value, Call) and isinstance(value.callee, Api) else ""
    return ".flags.DEFINE_" in name


def without_command_line(value: Value | None) -> tuple[Value, ...]:
    """What a value may be where the command line says nothing: of an argument its default alone."""
    choices = options(value)
    rest = tuple(choice for choice in choices if not is_from_command_line(choice))
    return rest if rest and all(isinstance(choice, Known) for choice in rest) else choices
