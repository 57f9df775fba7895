"""Which interpreter examines, and where it has no TensorFlow, which others near the project have it."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mpdoctor.targets import Target

OLDEST_PYTHON = (3, 8)
OLDEST_TENSORFLOW = (2, 4)
PATIENCE = 60.0  # seconds for one interpreter to answer
SUGGESTED = 5  # others that a message names
ASKED = 40  # others that are asked, so that a machine with hundreds of environments answers as soon
ENVIRONMENT_FOLDERS = (".venv", "venv", "env")
# Where tools keep environments that lie outside of the project: pyenv, conda, virtualenvwrapper, pipenv, Poetry.
ENVIRONMENT_STORES = (
    "~/.pyenv/versions",
    *(f"~/{name}/envs" for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")),
    "/opt/conda/envs",
    "~/.virtualenvs",
    "~/.local/share/virtualenvs",
    "~/.cache/pypoetry/virtualenvs",
)
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
    """What an interpreter answered.

    python
        None where it gave no answer that a Python gives.
    tensorflow
        "" where it has none, "?" where it cannot tell which.
    complaint
        What a program without an answer said first.
    """

    path: Path
    python: tuple[int, int, int] | None = None
    tensorflow: str = ""
    complaint: str = ""

    @property
    def problem(self) -> str:
        """Why it cannot examine, as a sentence without its full stop; "" where it can."""
        if self.python is None:
            if not self.path.exists():
                return f"{self.path} does not exist"
            said = f", and says {self.complaint!r}" if self.complaint else ""
            return f"{self.path} is no Python: it does not answer as one{said}"
        if self.python < OLDEST_PYTHON:
            return (
                f"{self} is too old: training is examined in Python {_dotted(OLDEST_PYTHON)} or later, with TensorFlow "
                f"{_dotted(OLDEST_TENSORFLOW)} or later"
            )
        if not self.tensorflow:
            return f"{self} has no TensorFlow"
        if (release := _release(self.tensorflow)) and release < OLDEST_TENSORFLOW:
            return f"{self} has TensorFlow {self.tensorflow}, and {_dotted(OLDEST_TENSORFLOW)} or later is examined"
        return ""

    def __str__(self) -> str:
        return f"{self.path} (Python {_dotted(self.python)})" if self.python else str(self.path)


class NoInterpreter(Exception):
    """None that can examine was found; the text is for the user: what is wrong, and what to do."""


def interpreter_for(target: Target, named: Path | None) -> Path:
    """`--python`; else the interpreter that runs mpdoctor; else the active or nearest virtual environment with
    TensorFlow.

    Raises NoInterpreter."""
    if named is not None:
        asked = interpreter_from_path(named)
        if not asked.problem:
            return named
        raise NoInterpreter(f"{asked.problem}. {_remedy(_others(target, {named}), own=False)}")
    spec = importlib.util.find_spec("tensorflow")
    if spec is not None and spec.origin is not None:
        return Path(sys.executable)
    tried = [Interpreter(Path(sys.executable), sys.version_info[:3])]
    for python in dict.fromkeys(_pythons_of(_environments_of_project(target))):
        asked = interpreter_from_path(python)
        if not asked.problem:
            return python
        tried.append(asked)
    problems = "; ".join(interpreter.problem for interpreter in tried)
    raise NoInterpreter(f"{problems}. {_remedy(_others(target, {one.path for one in tried}), own=True)}")


def interpreter_from_path(python: Path) -> Interpreter:
    """Ask the program itself; nothing of TensorFlow is imported."""
    try:
        asked = subprocess.run(
            [str(python), "-c", QUESTION],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Interpreter(python, complaint=str(getattr(error, "strerror", "") or ""))
    answer = _ANSWER.search(asked.stdout.decode("utf-8", "replace").replace("\r\n", "\n"))
    if answer is None:
        first = asked.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        return Interpreter(python, complaint=first.strip()[:200])
    major, minor, micro, tensorflow = answer.groups()
    return Interpreter(python, (int(major), int(minor), int(micro)), tensorflow.strip("-"))


def _remedy(others: list[Interpreter], own: bool) -> str:
    """`own`: whether the interpreter that runs mpdoctor was tried, and might get a TensorFlow."""
    if others:
        found = ", ".join(f"{one} with TensorFlow {one.tensorflow}".replace(" ?", "") for one in others)
        return f"Name one that has it: --python {shlex.quote(str(others[0].path))}. Found near here: {found}."
    install = ", or install TensorFlow beside mpdoctor: pip install 'mpdoctor[tensorflow]'" if own else ""
    return f"Name the interpreter that runs your training with --python PATH{install}. `--static` needs none."


# --- where interpreters are -------------------------------------------------------------------------------------
def _environments_of_project(target: Target) -> Iterator[Path]:
    """The active environments, then those in the project's folder and its parents, the nearest first."""
    yield from _active_environments()
    start = (target.path or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        yield from (folder / name for name in ENVIRONMENT_FOLDERS)


def _active_environments() -> Iterator[Path]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])


def _others(target: Target, tried: set[Path]) -> list[Interpreter]:
    """Those that could examine, but that nobody named: never chosen, only suggested."""
    known = {path.absolute() for path in tried}
    near = _pythons_of([*_environments_of_project(target), *_kept_environments()])
    pythons = [python for python in dict.fromkeys((Path(sys.executable), *near)) if python.absolute() not in known]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(interpreter_from_path, pythons[:ASKED]))
    return [answer for answer in answers if not answer.problem][:SUGGESTED]


def _kept_environments() -> Iterator[Path]:
    """What pyenv, conda and their like keep outside of projects."""
    register = Path("~/.conda/environments.txt").expanduser()  # every environment that this user's conda made
    if register.is_file():
        yield from (Path(line) for line in register.read_text(encoding="utf-8", errors="replace").split("\n") if line)
    own = [os.environ.get("PYENV_ROOT"), os.environ.get("WORKON_HOME")]
    stores = [Path(own[0]) / "versions"] if own[0] else []
    stores += [Path(own[1])] if own[1] else []
    for store in (*stores, *(Path(name).expanduser() for name in ENVIRONMENT_STORES)):
        if store.is_dir():
            yield from sorted(store.iterdir())


def _pythons_of(environments: Iterable[Path]) -> Iterator[Path]:
    places = ("python.exe", "Scripts/python.exe") if os.name == "nt" else ("bin/python",)
    for environment in environments:
        yield from (environment / place for place in places if (environment / place).is_file())


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _release(version: str) -> tuple[int, ...]:
    """(2, 4) of "2.4.1"; () where it says nothing."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else ()
