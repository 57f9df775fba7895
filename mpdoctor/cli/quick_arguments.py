"""The parameters of a check in its commonest forms, read without typer: to import it and to make its command takes a
tenth of a check of one file. Whatever is not read here, `--help` and mistakes included, is for typer."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import Enum
from typing import Any

FLAGS = {
    "--static": ("static", True),
    "--exit-zero": ("exit_zero", True),
    "--no-cache": ("no_cache", True),
    "--isolated": ("isolated", True),
    "--statistics": ("statistics", True),
    "--force-exclude": ("force_exclude", True),
    "--quiet": ("quiet", True),
    "-q": ("quiet", True),
    "--assume-mixed": ("assume_mixed", True),
    "--no-assume-mixed": ("assume_mixed", False),
}
# Options that may be given several times.
LISTS = {
    "--select": "select",
    "--extend-select": "extend_select",
    "--ignore": "ignore",
    "--extend-ignore": "extend_ignore",
    "--exclude": "exclude",
    "--extend-exclude": "extend_exclude",
}
CHOICES = ("--output-format", "--fail-on", "--color")
_ASKS_FOR_COMPLETION = "_MPDOCTOR_COMPLETE"


def parameters_of_check(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The parameters that the arguments of `mpdoctor check …` give, by name; None where they are for typer to read."""
    if _ASKS_FOR_COMPLETION in os.environ or sys.platform == "win32":
        return None
    given: dict[str, Any] = {}
    targets: list[str] = []
    rest = list(reversed(arguments[1:]))
    while rest:
        argument = rest.pop()
        if not argument.startswith("-"):
            targets.append(argument)
            continue
        if argument in FLAGS:
            name, value = FLAGS[argument]
            given[name] = value
            continue
        option, equals, text = argument.partition("=")
        text = text if equals else rest.pop() if rest else ""
        if not text or text.startswith("-"):
            return None
        if option in LISTS:
            given.setdefault(LISTS[option], []).append(text)
        elif option in CHOICES and (chosen := _chosen(option, text)) is not None:
            given[option[2:].replace("-", "_")] = chosen
        else:
            return None
    return None if "" in targets else {**given, "targets": targets or None}


def _chosen(option: str, text: str) -> Any:
    """What the value of an option chooses; None where it is none of the choices."""
    from mpdoctor.cli.output import OutputFormat
    from mpdoctor.cli.streams import Color
    from mpdoctor.finding import Severity

    choices: dict[str, type[Enum]] = {"--output-format": OutputFormat, "--fail-on": Severity, "--color": Color}
    return next((choice for choice in choices[option] if choice.value == text), None)
