"""What a run asks of the file system and of its environment variables, with a record of the answers: while all of them
stay the same, so does what the run says.

Whatever a judgement of source rests on is asked through here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import local

from mpdoctor.project.name_patterns import any_of
from mpdoctor.project.regular_files import LARGEST, bytes_from_file

StrPath = str | Path
Answer = str | bool | list[str] | dict[str, bool] | None
"""As JSON has it. Of bytes their digest; of a refusal "error " and the system's number for it."""


class Record:
    """The questions of a run and their answers.

    answers
        By question ("is_file", "bytes 3000000", …), and by what it was about: a path, or the name of a variable.
    is_steady
        Whether each question that was asked again got the same answer.
    """

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Answer]] = {}
        self.is_steady = True

    def note(self, question: str, about: StrPath, answer: Answer) -> None:
        noted = self._answers_to(question).setdefault(os.fspath(about), answer)
        self.is_steady = self.is_steady and noted == answer

    def asked_of_modules(self, directory: StrPath) -> dict[str, bool]:
        """By name, for whoever asks for many names of one directory: what is put in is noted."""
        found = self._answers_to("modules").setdefault(os.fspath(directory), {})
        assert isinstance(found, dict)
        return found

    def _answers_to(self, question: str) -> dict[str, Answer]:
        return self.answers.setdefault(question, {})


class _OfThread(local):
    record: Record | None = None


_of_thread = _OfThread()


@contextmanager
def recorded() -> Iterator[Record]:
    """The questions of this thread, as long as it lasts."""
    before, _of_thread.record = _of_thread.record, Record()
    try:
        yield _of_thread.record
    finally:
        _of_thread.record = before


def are_answered_as(answers: Mapping[str, Mapping[str, Answer]]) -> bool:
    """Whether the system answers all of these questions now as it did then."""
    each = ((question, about, told) for question, by_path in answers.items() for about, told in by_path.items())
    return all(_answer(question, about, told) == told for question, about, told in each)


# --- questions ------------------------------------------------------------------------------------------------------
# The answer of those that begin with `is_` is False where the system refuses to say.
def is_file(path: StrPath) -> bool:
    return _is("is_file", path)


def is_file_of_at_most(size: int, path: StrPath) -> bool:
    """`size`: in bytes."""
    return _is(f"is_file_of_at_most {size}", path)


def is_there(path: StrPath) -> bool:
    """Of a link: whether what it leads to is there."""
    return _is("is_there", path)


def is_named(path: StrPath) -> bool:
    """Whether anything has this name, a link that leads nowhere included."""
    return _is("is_named", path)


def is_link(path: StrPath) -> bool:
    return _is("is_link", path)


def real_path(path: StrPath) -> str:
    found = os.path.realpath(path)
    _note("real_path", path, found)
    return found


def environment_variable(name: str) -> str | None:
    found = os.environ.get(name)
    _note("environment_variable", name, found)
    return found


def names_like(patterns: tuple[str, ...], directory: StrPath, in_any_case: bool = False) -> list[str]:
    """What in a directory has a name like one of these patterns of the shell, in order. `in_any_case`: they are written
    in small letters, the names may be in any.

    Raises OSError."""
    question = "\n".join(("names_in_any_case" if in_any_case else "names", *patterns))
    try:
        found = _names_like(patterns, directory, in_any_case)
    except OSError as error:
        _note(question, directory, _refusal(error))
        raise
    _note(question, directory, found)
    return found


class ModuleNames:
    """What a directory holds, without the suffix of Python's files; nothing where it can't be listed. Noted is only
    what was asked for: what else is put there changes nothing."""

    def __init__(self, directory: StrPath) -> None:
        record = _of_thread.record
        self._names = _module_names(directory)
        self._asked = {} if record is None else record.asked_of_modules(directory)

    def __contains__(self, name: str) -> bool:
        found = self._asked[name] = name in self._names
        return found


def bytes_of(path: StrPath, largest: int = LARGEST) -> bytes:
    """All that a regular file holds.

    Raises OSError, as `bytes_from_file` does."""
    question = f"bytes {largest}"
    try:
        found = bytes_from_file(path, largest)
    except OSError as error:
        _note(question, path, _refusal(error))
        raise
    if _of_thread.record is not None:
        _note(question, path, _digest(found))
    return found


# --- answers --------------------------------------------------------------------------------------------------------
def _is(question: str, path: StrPath) -> bool:
    found = bool(_answer(question, os.fspath(path)))
    _note(question, path, found)
    return found


def _note(question: str, about: StrPath, answer: Answer) -> None:
    record = _of_thread.record
    if record is not None:
        record.note(question, about, answer)


def _answer(question: str, about: str, told: Answer = None) -> Answer:
    """What is noted of the same question now. `told`: what was noted then, which for modules says which were asked
    for. Raises KeyError for what is no question."""
    if question in _PLAIN:
        return _PLAIN[question](about)
    if question == "modules":
        names = _module_names(about)
        return {name: name in names for name in told} if isinstance(told, dict) else {}
    kind, *patterns = question.split("\n")
    try:
        if patterns:
            return _names_like(tuple(patterns), about, kind == "names_in_any_case")
        kind, size = question.split(" ")
        return _SIZED[kind](about, int(size))
    except OSError as error:
        return False if kind.startswith("is_") else _refusal(error)


def _names_like(patterns: tuple[str, ...], directory: StrPath, in_any_case: bool) -> list[str]:
    fits = any_of(patterns)
    names = os.listdir(directory)  # noqa: PTH208 - one text for each, not one Path
    return sorted(name for name in names if fits(name.lower() if in_any_case else name))


def _module_names(directory: StrPath) -> frozenset[str]:
    try:
        return frozenset(name.removesuffix(".py") for name in os.listdir(directory))  # noqa: PTH208 - as above
    except OSError:
        return frozenset()


def _is_file_of_at_most(path: str, size: int) -> bool:
    return os.path.isfile(path) and os.stat(path).st_size <= size  # noqa: PTH113, PTH116 - Path's raises where it may not look


_PLAIN: dict[str, Callable[[str], Answer]] = {
    "is_file": os.path.isfile,
    "is_there": os.path.exists,
    "is_named": os.path.lexists,
    "is_link": os.path.islink,
    "real_path": os.path.realpath,
    "environment_variable": os.environ.get,
}
_SIZED: dict[str, Callable[[str, int], Answer]] = {
    "is_file_of_at_most": _is_file_of_at_most,
    "bytes": lambda path, largest: _digest(bytes_from_file(path, largest)),
}


def _refusal(error: OSError) -> str:
    return f"error {error.errno}"


def _digest(content: bytes) -> str:
    from hashlib import blake2b  # it brings OpenSSL, which a check of one program does without

    return blake2b(content, digest_size=16).hexdigest()
