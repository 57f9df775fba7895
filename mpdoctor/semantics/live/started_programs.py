"""What a program started in other processes: which commands, and what to give `mpdoctor check` for each."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from mpdoctor.facts.processes import StartedProcess, StartedProgram

LONGEST = 120
_is_python = re.compile(r"(?:.*[/\\])?(?:python|pypy)[\d.]*w?(?:\.exe)?$", re.IGNORECASE).match
# Modules that are run and train nothing.
_TOOLS = re.compile(
    r"(?:build|compileall|debugpy|ensurepip|gdown|http|ipykernel|jupyter\w*|nbconvert|nltk|pip|platform|pytest|site|spacy"
    r"|sysconfig|tarfile|tensorboard|timeit|unittest|venv|virtualenv|wandb|zipfile)(?:\..*)?"
).fullmatch
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_ENDS_COMMAND = frozenset((";", "&", "&&", "|", "||", ">", ">>", "<", "(", ")"))


class _Python(NamedTuple):
    """A script or module that a Python runs, with its arguments."""

    script: str
    module: str
    arguments: tuple[str, ...]


def started_programs(processes: Iterable[StartedProcess]) -> tuple[StartedProgram, ...]:
    """The commands, each once, in the order in which they were first started; those that may train come first."""
    counts = Counter(_program(process) for process in processes)
    counted = [
        StartedProgram(each.how, each.command, number, each.may_train, each.examine, each.changed)
        for each, number in counts.items()
    ]
    return tuple(sorted(counted, key=lambda program: not program.may_train))


def _program(process: StartedProcess) -> StartedProgram:
    if process.how == "multiprocessing":
        return StartedProgram(process.how, "".join(process.arguments), may_train=True)
    words = _words(process)
    python = _python_in(words)
    if words and _is_python(words[0]):
        words = ["python", *words[1:]]
    shown = process.arguments[0] if process.how == "shell" and process.arguments else shlex.join(words)
    return StartedProgram(
        process.how,
        " ".join(shown.split())[:LONGEST],
        may_train=python is not None,
        examine="" if python is None else _to_examine(python, process.directory),
        changed=process.changed,
    )


def _words(process: StartedProcess) -> list[str]:
    if process.how != "shell":
        return list(process.arguments)
    line = shlex.shlex(process.arguments[0] if process.arguments else "", posix=True, punctuation_chars=True)
    line.whitespace_split = True
    line.commenters = ""
    try:
        return list(line)
    except ValueError:  # a quotation that does not end
        return []


def _python_in(words: Sequence[str]) -> _Python | None:
    """The first Python program in these words that may train; None where there is none: a tool, or code behind -c."""
    for place, word in enumerate(words):
        if word.endswith(".py") and (place == 0 or words[place - 1] in _ENDS_COMMAND):
            return _Python(word, "", _arguments(words[place + 1 :]))
        if _is_python(word):
            python = _run_by(words[place + 1 :])
            if python is not None and not _TOOLS(python.module):
                return python
    return None


def _run_by(words: Sequence[str]) -> _Python | None:
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "-m" and rest:
            return _Python("", rest[0], _arguments(rest[1:]))
        if option in ("-c", "-V", "--version", "-h", "--help", "-m"):
            return None
        if option in _WITH_VALUE and rest:
            rest.pop(0)
    if not rest or rest[0] in ("-", *_ENDS_COMMAND):
        return None
    return _Python(rest[0], "", _arguments(rest[1:]))


def _arguments(words: Sequence[str]) -> tuple[str, ...]:
    end = next((place for place, word in enumerate(words) if word in _ENDS_COMMAND), len(words))
    return tuple(words[:end])


def _to_examine(python: _Python, directory: str) -> str:
    """What follows `mpdoctor check`; "" for a module that does not lie where the program was started."""
    script = python.script or _file_of(python.module, directory)
    if not script:
        return ""
    path = Path(directory, script)
    shown = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    arguments = f" -- {shlex.join(python.arguments)}" if python.arguments else ""
    return (shlex.quote(shown) + arguments)[:LONGEST]


def _file_of(module: str, directory: str) -> str:
    file = module.replace(".", "/")
    return next((path for path in (f"{file}.py", f"{file}/__main__.py") if Path(directory, path).is_file()), "")
