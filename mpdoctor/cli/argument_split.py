"""The command line, split at `--`: mpdoctor's own arguments, and those of the script."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from mpdoctor.facts.frozen import dataclass

RUNNING = ("check", "mend")  # the commands that run a script


@dataclass(frozen=True)
class Invocation:
    """A command line, split.

    own
        The arguments for mpdoctor.
    script_args
        What is to be handed to the script: all that follows the first `--`.
    command
        All of it, as it can be typed again.
    """

    own: tuple[str, ...]
    script_args: tuple[str, ...]
    command: str


def invocation_from_arguments(arguments: Sequence[str]) -> Invocation:
    command = shlex.join(["mpdoctor", *arguments])
    if not arguments or arguments[0] not in RUNNING or "--" not in arguments:
        return Invocation(tuple(arguments), (), command)
    at = arguments.index("--")
    return Invocation(tuple(arguments[:at]), tuple(arguments[at + 1 :]), command)


def advice_on_target_behind(script_args: Sequence[str]) -> str:
    """What to write where the first argument after `--` is a file, and so perhaps the target; "" where it is none. It
    begins with a space."""
    first = script_args[0] if script_args else ""
    if not os.path.exists(first):  # noqa: PTH110 - Path.exists raises where a name is too long
        return ""
    if first.startswith("-"):
        return f" A file whose name begins with a dash is named {shlex.quote(os.path.join(os.curdir, first))}."  # noqa: PTH118
    return f" Name {shlex.quote(first)} before the `--`."
