"""Questions to the file system and to the environment variables, with a record of the answers: as long as all answers
are the same, a run finds the same.

Everything that findings in source depend on is asked through this module.
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
"""A value as JSON has it. For bytes it is their digest, for a refusal "error " and the system's number of it."""


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
        """The answers to `ModuleNames` by name, to which further ones are added."""
        answers = self._answers_to("modules").setdefault(os.fspath(directory), {})
        assert isinstance(answers, dict)
        return answers

    def _answers_to(self, question: str) -> dict[str, Answer]:
        return self.answers.setdefault(question, {})


class _OfThread(local):
    record: Record | None = None


_of_thread = _OfThread()


@contextmanager
def recorded() -> Iterator[Record]:
    """Record the questions of this thread, as long as the context lasts."""
    before, _of_thread.record = _of_thread.record, Record()
    try:
        yield _of_thread.record
    finally:
        _of_thread.record = before


def note_change() -> None:
    """Note that a file was found changed during the run."""
    if _of_thread.record is not None:
        _of_thread.record.is_steady = False


def are_answered_as(answers: Mapping[str, Mapping[str, Answer]]) -> bool:
    """Whether the system answers all of these questions now as it did then."""
    each = ((question, about, told) for question, by_path in answers.items() for about, told in by_path.items())
    return all(_answer_now(question, about, told) == told for question, about, told in each)


# --- questions ------------------------------------------------------------------------------------------------------
# The answer of those that begin with `is_` is False where the system refuses to say.
def is_file(path: StrPath) -> bool:
    return _asked_whether("is_file", path)


def is_file_of_at_most(size: int, path: StrPath) -> bool:
    """Whether it is a regular file of at most `size` bytes."""
    return _asked_whether(f"is_file_of_at_most {size}", path)


def is_there(path: StrPath) -> bool:
    """Whether a file or a directory is there; for a link, whether its target is."""
    return _asked_whether("is_there", path)


def is_named(path: StrPath) -> bool:
    """Whether anything has this name, a link that leads nowhere included."""
    return _asked_whether("is_named", path)


def is_link(path: StrPath) -> bool:
    return _asked_whether("is_link", path)


def real_path(path: StrPath) -> str:
    answer = os.path.realpath(path)
    _note("real_path", path, answer)
    return answer


def environment_variable(name: str) -> str | None:
    value = os.environ.get(name)
    _note("environment_variable", name, value)
    return value


def names_like(patterns: tuple[str, ...], directory: StrPath, in_any_case: bool = False) -> list[str]:
    """The sorted names in a directory that match one of these patterns of the shell. `in_any_case`: the patterns are in
    small letters, the names may be in capital ones.

    Raises OSError."""
    question = "\n".join(("names_in_any_case" if in_any_case else "names", *patterns))
    try:
        names = _names_like(patterns, directory, in_any_case)
    except OSError as error:
        _note(question, directory, _refusal(error))
        raise
    _note(question, directory, names)
    return names


class ModuleNames:
    """The names in a directory, without the suffix of Python's files; none where it can't be listed. Only the names
    that are asked for are recorded: other files in the directory change nothing."""

    def __init__(self, directory: StrPath) -> None:
        record = _of_thread.record
        self._names = _module_names(directory)
        self._asked = {} if record is None else record.asked_of_modules(directory)

    def __contains__(self, name: str) -> bool:
        is_there = self._asked[name] = name in self._names
        return is_there


def bytes_of(path: StrPath, largest: int = LARGEST) -> bytes:
    """The content of a regular file.

    Raises OSError, as `bytes_from_file` does."""
    question = f"bytes {largest}"
    try:
        content = bytes_from_file(path, largest)
    except OSError as error:
        _note(question, path, _refusal(error))
        raise
    if _of_thread.record is not None:
        _note(question, path, digest_of(content))
    return content


# --- answers --------------------------------------------------------------------------------------------------------
def _asked_whether(question: str, path: StrPath) -> bool:
    answer = bool(_answer_now(question, os.fspath(path)))
    _note(question, path, answer)
    return answer


def _note(question: str, about: StrPath, answer: Answer) -> None:
    record = _of_thread.record
    if record is not None:
        record.note(question, about, answer)


def _answer_now(question: str, about: str, told: Answer = None) -> Answer:
    """The answer of the system now. `told`: the recorded one, which for modules says which names were asked for.

    Raises KeyError for an unknown question."""
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
    "bytes": lambda path, largest: digest_of(bytes_from_file(path, largest)),
}


def _refusal(error: OSError) -> str:
    return f"error {error.errno}"


def digest_of(content: bytes) -> str:
    """The digest of a file's content, in hexadecimal digits."""
    from hashlib import blake2b  # it brings OpenSSL, which a check of one program does without

    return blake2b(content, digest_size=16).hexdigest()
