"""The arguments that a script ended itself for, as argparse, absl, click or typer name them in what they print, and the
command line with something in their places."""

from __future__ import annotations

import re
import shlex

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.frozen import dataclass

ANYTHING = "…"

# Compiled where they are used: a check of the source alone needs none of them.
_ARGPARSE = r"(?m)^\S.*: error: the following arguments are required: (?P<names>\S.*)$"
_ARGPARSE_ONE_OF = r"(?m)^\S.*: error: one of the arguments (?P<names>\S.*) is required$"
_CLICK = r"Missing (?P<kind>option|argument) '(?P<name>[^'\s]+)'"
_ABSL = r"(?m)^ *flag --(?P<name>[\w.-]+)=None: .*must have a value other than None"
_INDEX = r"\bargv\[(?P<number>\d+)\]"


@dataclass(frozen=True)
class MissingArgument:
    """An argument that a script cannot do without.

    name
        As the script's own help names it: "--data", "corpus".
    written
        What takes its place on a command line: ("--data", "DATA"), ("CORPUS",).
    """

    name: str
    written: tuple[str, ...]


def missing_arguments(failure: FailureFacts) -> tuple[MissingArgument, ...]:
    """The arguments of the command line that are missing; () where nothing says so for certain, and which."""
    if failure.kind == "exited" and failure.exit_code:
        said = failure.last_words
        return (
            _arguments_of_argparse(said)
            or _arguments_of_click(said)
            or _arguments_of_absl(f"{said}\n{failure.message}")
        )
    index = re.search(_INDEX, failure.failing_line)
    given = max(len(failure.command_line) - 1, 0)
    if failure.exception == "IndexError" and index is not None and given < int(index["number"]):
        return tuple(MissingArgument(f"sys.argv[{n}]", (ANYTHING,)) for n in range(given + 1, int(index["number"]) + 1))
    return ()


def command_with(missing: tuple[MissingArgument, ...], failure: FailureFacts) -> str:
    """ "mpdoctor check train.py -- --data DATA"."""
    script = failure.command_line[0] if failure.command_line else "train.py"
    written = [word for argument in missing for word in argument.written]
    words = [script, "--", *failure.command_line[1:], *written]
    return " ".join(["mpdoctor check", *(word if word.endswith(ANYTHING) else shlex.quote(word) for word in words)])


def _arguments_of_argparse(said: str) -> tuple[MissingArgument, ...]:
    match = re.search(_ARGPARSE, said)
    if match is not None:
        return tuple(_with_value(name, said) for name in match["names"].split(", "))
    one_of = re.search(_ARGPARSE_ONE_OF, said)
    if one_of is None:
        return ()
    names = one_of["names"].split()
    return (MissingArgument(" or ".join(names), _with_value(names[0], said).written),)


def _with_value(name: str, said: str) -> MissingArgument:
    """The missing argument with the value that the usage shows beside one of its spellings, if it shows one. `name` may
    hold two spellings, "--data/-d"."""
    spellings = name.split("/") if name.startswith("-") else [name]
    shown = max(spellings, key=len)
    if not name.startswith("-"):
        choice = name[1:].partition(",")[0].rstrip("}") if name.startswith("{") else name.upper()
        return MissingArgument(name, (_placeholder(choice),))
    for spelling in spellings:
        usage = re.search(rf"(?<![\w-]){re.escape(spelling)} (?P<value>\{{[^}}\s]+\}}|[A-Z][A-Z0-9_]*)(?!\w)", said)
        if usage is not None:
            return MissingArgument(shown, (shown, _placeholder(usage["value"].strip("{}").partition(",")[0])))
    return MissingArgument(shown, (shown, ANYTHING))


def _placeholder(text: str) -> str:
    return text if re.fullmatch(r"[\w.-]+", text) else ANYTHING


def _arguments_of_click(said: str) -> tuple[MissingArgument, ...]:
    """The missing argument that click or typer names: one at a time."""
    match = re.search(_CLICK, said)
    if match is None or "Usage: " not in said:
        return ()
    name = match["name"]
    is_option = match["kind"] == "option"
    return (MissingArgument(name, (name, ANYTHING) if is_option else (_placeholder(name.upper()),)),)


def _arguments_of_absl(said: str) -> tuple[MissingArgument, ...]:
    names = dict.fromkeys(f"--{match['name']}" for match in re.finditer(_ABSL, said))
    return tuple(MissingArgument(name, (f"{name}={ANYTHING}",)) for name in names)
