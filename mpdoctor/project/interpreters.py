"""Which interpreter examines, and where it has no TensorFlow, which others near the project have it."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.facts.frozen import dataclass
from mpdoctor.project.python_environments import (
    active_environments,
    environments_near,
    environments_of_project,
    part_of_others,
    python_of,
    versions_from_files,
)
from mpdoctor.project.targets import Target

OLDEST_PYTHON = (3, 8)
OLDEST_TENSORFLOW = (2, 4)
NAMELESS = Path()  # the path of a Python that does not know its own: its sys.executable is empty
PATIENCE = 60.0  # seconds for one interpreter to answer
SUGGESTED = 5  # others that a message names
# Written for any Python, 2.7 as well. It imports nothing of TensorFlow, looks past what lies in the working directory,
# and past a folder called tensorflow that is no package. What it prints does not stand in its own text.
QUESTION = """
import sys
sys.path = [place for place in sys.path if place]
version, tensorflow = "%d.%d.%d" % sys.version_info[:3], "-"
if sys.version_info >= (3, 8):
    import importlib.metadata as metadata, importlib.util as util
    spec = util.find_spec("tensorflow")
    if spec is not None and spec.origin is not None:
        tensorflow = "?"
        for name in ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tensorflow-macos",
                     "tensorflow-rocm", "tf-nightly"):
            try:
                tensorflow = metadata.version(name)
                break
            except metadata.PackageNotFoundError:
                pass
sys.stdout.write("\\nPython=%s TensorFlow=%s\\n" % (version, tensorflow))
"""
_ANSWER = re.compile(r"^Python=(\d+)\.(\d+)\.(\d+) TensorFlow=(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Interpreter:
    """What an interpreter answered, or its environment's files tell.

    python
        None where it gave no answer that a Python gives.
    tensorflow
        "" where it has none, "?" where it cannot tell which.
    complaint
        What a program without an answer said first.
    of_others
        The part of its environment because of which it was not asked.
    """

    path: Path
    python: tuple[int, ...] | None = None
    tensorflow: str = ""
    complaint: str = ""
    of_others: Path | None = None

    @property
    def problem(self) -> str:
        """Why it cannot examine, as a sentence without its full stop; "" where it can."""
        if self.of_others is not None:
            return f"{self.path} is not run: {self.of_others} belongs to another user, or others can write to it"
        if self.path == NAMELESS:
            return f"{self} does not know where it lies: it can't be started again"
        if self.python is None:
            if not self.path.exists():
                return f"{self.path} does not exist"
            said = f", and says {self.complaint!r}" if self.complaint else ""
            return f"{self.path} is not a Python: it does not answer like one{said}"
        if self.python < OLDEST_PYTHON:
            return (
                f"{self} is too old: training is examined in Python {_version_text(OLDEST_PYTHON)} or later, with "
                f"TensorFlow {_version_text(OLDEST_TENSORFLOW)} or later"
            )
        if not self.tensorflow:
            return f"{self} has no TensorFlow"
        if (release := _release(self.tensorflow)) and release < OLDEST_TENSORFLOW:
            return (
                f"{self} has TensorFlow {self.tensorflow}, and {_version_text(OLDEST_TENSORFLOW)} or later is examined"
            )
        return ""

    def __str__(self) -> str:
        if self.path == NAMELESS:
            return f"the Python {_version_text(self.python or ())} that runs mpdoctor"
        return f"{self.path} (Python {_version_text(self.python)})" if self.python else str(self.path)


class NoInterpreter(Exception):
    """There is no interpreter that can examine. The text says to the user what is wrong and what to do."""


@dataclass(frozen=True)
class Choice:
    """An interpreter, and why it examines; "" where that needs no word: it was named, or runs mpdoctor."""

    path: Path
    because: str = ""


def interpreter_for(target: Target, named: Path | None) -> Path:
    """The path of the interpreter that `choice_for` chooses. Raises NoInterpreter."""
    return choice_for(target, named).path


def choice_for(target: Target, named: Path | None) -> Choice:
    """`--python`; else the interpreter that runs mpdoctor; else the active environment, or the nearest of the project
    itself, that has TensorFlow. Nothing is run that somebody else may have put there. A saved file may have come with
    all that lies beside it: none of that is run for it.

    Raises NoInterpreter."""
    if named is not None:
        asked = interpreter_from_path(named)
        if not asked.problem:
            return Choice(named)
        raise NoInterpreter(f"{asked.problem}. {_remedy(_interpreters_to_suggest(target, {named}), own=False)}")
    own = Path(sys.executable)
    spec = importlib.util.find_spec("tensorflow")
    if spec is not None and spec.origin is not None and own != NAMELESS:
        return Choice(own)
    tried = [Interpreter(own, sys.version_info[:3])]
    for python, because, asked in _asked_for(target):
        if not asked.problem:
            return Choice(python, because)
        tried.append(asked)
    problems = "; ".join(interpreter.problem for interpreter in tried)
    others = _interpreters_to_suggest(target, {interpreter.path for interpreter in tried})
    raise NoInterpreter(f"{problems}. {_remedy(others, own=own != NAMELESS)}")


def _asked_for(target: Target) -> Iterator[tuple[Path, str, Interpreter]]:
    """Interpreters that are used without being named, in order of preference: (path, why, what it answered)."""
    for environment in dict.fromkeys(active_environments()):
        if python := python_of(environment):
            yield python, "the active environment", interpreter_from_path(python)
    for environment in () if target.is_saved else environments_of_project(_place_of(target)):
        if python := python_of(environment):
            others = part_of_others(environment, python)
            asked = interpreter_from_path(python) if others is None else Interpreter(python, of_others=others)
            yield python, "the project's own environment", asked


def _place_of(target: Target) -> Path:
    return (target.path or Path.cwd()).resolve()


def interpreter_from_path(python: Path) -> Interpreter:
    """Ask the program itself; nothing of TensorFlow is imported."""
    try:
        asked = subprocess.run(
            [str(python), "-c", QUESTION],
            # Python 3.13 looks for linecache in the working directory, before the question is read
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Interpreter(python, complaint=str(getattr(error, "strerror", "") or ""))
    answer = _ANSWER.search(asked.stdout.decode("utf-8", "replace").replace("\r\n", "\n"))
    if answer is None:
        complaint = asked.stderr.decode("utf-8", "replace")
        first = complaint.strip().partition("\n")[0]
        repeats_question = "import sys" in complaint  # `ls: cannot access '…'`: nothing that helps a user
        return Interpreter(python, complaint="" if repeats_question else first.strip()[:200])
    major, minor, micro, tensorflow = answer.groups()
    return Interpreter(python, (int(major), int(minor), int(micro)), tensorflow.strip("-"))


def _remedy(others: list[Interpreter], own: bool) -> str:
    """`own`: whether the interpreter that runs mpdoctor was tried, and might get a TensorFlow."""
    if others:
        listed = ", ".join(f"{other} with TensorFlow {other.tensorflow}".replace(" ?", "") for other in others)
        return f"Name one that has it: --python {shlex.quote(str(others[0].path))}. Found near here: {listed}."
    install = ", or install TensorFlow beside mpdoctor: pip install 'mpdoctor[tensorflow]'" if own else ""
    return f"Name the interpreter that runs your training with --python PATH{install}. `--static` needs none."


def _interpreters_to_suggest(target: Target, tried: set[Path]) -> list[Interpreter]:
    """Interpreters with TensorFlow that a message may suggest. They are never chosen without being named, and not
    run."""
    own = Path(sys.executable)
    interpreters = [interpreter_from_path(own)] if own.absolute() not in {path.absolute() for path in tried} else []
    seen = {path.absolute() for path in (*tried, own)}
    for environment in environments_near(_place_of(target)):
        python = python_of(environment)
        if python is None or python.absolute() in seen or part_of_others(environment, python) is not None:
            continue
        seen.add(python.absolute())
        interpreters.append(Interpreter(python, *versions_from_files(environment)))
    return [interpreter for interpreter in interpreters if not interpreter.problem][:SUGGESTED]


def _version_text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _release(version: str) -> tuple[int, ...]:
    """(2, 4) of "2.4.1"; () where it says nothing."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else ()
