"""Processes that an examined program started: as they were seen, and as a report names them."""

from __future__ import annotations

from typing import Literal, Sequence

from mpdoctor.facts.frozen import dataclass

STARTED = "started"  # of the evidence of a finding that tells of them
MOST_NAMED = 2
How = Literal["command", "shell", "replaced", "multiprocessing"]


@dataclass(frozen=True)
class StartedProcess:
    """One process, as it was started.

    how
        "command", with its arguments; "shell", one line for a shell; "replaced" where the program itself became that
        command (os.exec); "multiprocessing", a Python that multiprocessing started anew (spawn, forkserver, loky).
    arguments
        The command and its arguments, or the line; of multiprocessing the function that the program gave it, if any.
    directory
        Where it was started.
    changed
        The environment variables that a replaced program had changed before.
    """

    how: How
    arguments: tuple[str, ...]
    directory: str = ""
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class StartedProgram:
    """Processes that run one command, and were not examined.

    how
        As of StartedProcess.
    command
        The command, without the folder of its interpreter; of multiprocessing the function, "" where none is known.
    count
        How many were seen.
    may_train
        Whether it is a Python program that may train: no pip, no other tool.
    examine
        What to give `mpdoctor check` to examine it; "" where nobody can say.
    changed
        As of StartedProcess.
    """

    how: How
    command: str
    count: int = 1
    may_train: bool = False
    examine: str = ""
    changed: tuple[str, ...] = ()


# --- in words --------------------------------------------------------------------------------------------------------
def named(programs: Sequence[StartedProgram]) -> str:
    """The commands, as the object of "started": "`python train.py`", "3 processes (`a`, `b` and 1 more)"."""
    if len(programs) == 1:
        times = f" {programs[0].count} times" if programs[0].count > 1 else ""
        return _name(programs[0]) + times
    names = [_name(program) for program in programs[:MOST_NAMED]]
    more = len(programs) - len(names)
    listed = ", ".join(names) + (f" and {more} more" if more else "")
    return f"{sum(program.count for program in programs)} processes ({listed})"


def _name(program: StartedProgram) -> str:
    if program.how != "multiprocessing":
        return f"`{program.command}`"
    return f"`{program.command}` through multiprocessing" if program.command else "a worker process of multiprocessing"


def remedy(programs: Sequence[StartedProgram]) -> str:
    """How the first of these programs that may train can be examined, as a sentence; "" for none."""
    for program in programs:
        if program.how == "multiprocessing":
            what = f"`{program.command}`" if program.command else "what the workers run"
            return (
                f"Call {what} in the first process for the check. A fork is examined, too, if TensorFlow has computed "
                "nothing before it: multiprocessing.set_start_method('fork')."
            )
        if program.examine:
            return f"Examine that program: mpdoctor check {program.examine}"
    return ""


def what_was_started(programs: Sequence[StartedProgram]) -> str:
    """The sentence that a program without a training call owes to what it started, after a blank; "" for nothing."""
    if not programs:
        return ""
    return f" It started {named(programs)}; other processes are not examined."


def started_evidence(programs: Sequence[StartedProgram]) -> dict[str, object]:
    """What a finding with that sentence says as evidence."""
    return {STARTED: [program.command for program in programs]} if programs else {}
