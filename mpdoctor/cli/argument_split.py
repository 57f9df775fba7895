"""The command line, split at `--`: mpdoctor's own arguments, and those of the script."""

from __future__ import annotations

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
