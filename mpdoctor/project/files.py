"""The files of a directory to check: Python and notebooks that neither .gitignore nor `exclude` leaves out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from mpdoctor.facts.frozen import dataclass
from mpdoctor.project.gitignore_patterns import Pattern, pattern_from_line
from mpdoctor.project.project_folder import LEADS_OUT, link_out
from mpdoctor.project.regular_files import bytes_from_file

_SUFFIXES = (".py", ".ipynb")
_SKIPPED_DIRECTORIES = {"__pycache__", "node_modules", "site-packages"}
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"


@dataclass(frozen=True, slots=False)
class PathPatterns:
    """Patterns as .gitignore has them, for paths below a directory."""

    root: Path
    patterns: tuple[str, ...]

    def match(self, path: Path, is_directory: bool = False) -> bool:
        """Whether they take a path, or a directory that it lies in."""
        names = self._names(os.path.abspath(path))  # resolve() would follow links
        return any(
            self._decide(names[:count], is_directory or count < len(names)) for count in range(1, len(names) + 1)
        )

    def decide(self, path: str, is_directory: bool) -> bool | None:
        """Whether the last pattern that fits takes the path itself: False if it brings it back, None if none fits."""
        return self._decide(self._names(path), is_directory)

    def _decide(self, names: Sequence[str], is_directory: bool) -> bool | None:
        decisions = (pattern.takes for pattern in self._last_first if names and pattern.matches(names, is_directory))
        return next(decisions, None)

    def _names(self, path: str) -> list[str]:
        """The parts of a path relative to the directory of the patterns; [] where it does not lie below that."""
        is_below = bool(self.patterns) and path.startswith(self._prefix)
        return path[len(self._prefix) :].split(os.sep) if is_below else []

    @cached_property
    def _prefix(self) -> str:
        root = os.path.abspath(self.root)
        return root if root.endswith(os.sep) else root + os.sep

    @cached_property
    def _last_first(self) -> tuple[Pattern, ...]:
        return tuple(filter(None, map(pattern_from_line, reversed(self.patterns))))


@dataclass(frozen=True)
class FilesBelow:
    """What was found below a directory.

    denied
        Directories that can't be listed, and why.
    passed_over
        Links that would be read, and why they are not.
    """

    files: tuple[Path, ...]
    denied: tuple[tuple[Path, str], ...] = ()
    passed_over: tuple[tuple[Path, str], ...] = ()


def files_below(directory: Path, exclude: Sequence[PathPatterns] = (), *, everything: bool = False) -> FilesBelow:
    """Every .py and .ipynb file below a directory, sorted. Hidden directories, installed packages and virtual
    environments are left out. Links are not followed to directories, to files that the walk reaches anyway, or out of
    the project.

    `exclude`: patterns for more to leave out; a pattern that would exclude the named directory itself does not count.
    `everything`: also what Git ignores."""
    top = os.path.abspath(directory)
    exclude = [patterns for patterns in exclude if not patterns.match(directory, is_directory=True)]
    files: list[Path] = []
    denied: list[tuple[Path, str]] = []
    passed_over: list[tuple[Path, str]] = []
    waiting = [(directory, top, [] if everything else _ignores_above(top))]
    while waiting:
        folder, place, rules = waiting.pop()
        try:
            entries = _entries(folder)
        except OSError as error:
            denied.append((folder, error.strerror or str(error)))
            continue
        names = {entry.name for entry in entries}
        if _VIRTUAL_ENVIRONMENT in names:
            continue
        if ".gitignore" in names and not everything:
            rules = [*rules, _ignores_of(place)]
        kept = _entries_to_look_at(entries, place, top, exclude, rules)
        below = [entry.name for entry in kept if entry.is_dir(follow_symlinks=False)]
        links_out = [entry.name for entry in kept if _leads_out(entry, top)]
        no_files = {*below, *links_out}
        passed_over += [(folder / name, LEADS_OUT) for name in links_out]
        files += [folder / entry.name for entry in kept if entry.name not in no_files]
        waiting += [(folder / name, os.path.join(place, name), rules) for name in reversed(below)]
    return FilesBelow(tuple(files), tuple(denied), tuple(passed_over))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """The entries of a directory, sorted by name. Raises OSError if it cannot be listed."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _entries_to_look_at(
    entries: list[os.DirEntry[str]],
    place: str,
    top: str,
    exclude: Sequence[PathPatterns],
    ignoring: Sequence[PathPatterns],
) -> list[os.DirEntry[str]]:
    """What is looked at of the directory at `place`."""
    wanted = (entry for entry in entries if _is_wanted(entry, top))
    return [entry for entry in wanted if not _is_left_out(os.path.join(place, entry.name), entry, exclude, ignoring)]


def _leads_out(entry: os.DirEntry[str], top: str) -> bool:
    return entry.is_symlink() and link_out(os.path.abspath(entry.path), top) is not None


def _is_wanted(entry: os.DirEntry[str], top: str) -> bool:
    """Whether it is a directory to go into, or a regular file of code. A link to a file below `top` is seen there; one
    that leads nowhere, or in a circle, is no file."""
    if entry.is_dir(follow_symlinks=False):
        return not entry.name.startswith(".") and entry.name not in _SKIPPED_DIRECTORIES
    if not entry.name.endswith(_SUFFIXES):
        return False
    try:
        if not entry.is_file():
            return False
    except OSError:  # a circle of links
        return False
    return not entry.is_symlink() or not os.path.realpath(entry.path).startswith(os.path.realpath(top) + os.sep)


def _is_left_out(
    path: str, entry: os.DirEntry[str], exclude: Sequence[PathPatterns], ignoring: Sequence[PathPatterns]
) -> bool:
    is_directory = entry.is_dir(follow_symlinks=False)
    excluded = any(patterns.decide(path, is_directory) for patterns in exclude)
    return excluded or _is_ignored(path, is_directory, ignoring)


def _is_ignored(path: str, is_directory: bool, ignoring: Sequence[PathPatterns]) -> bool:
    """Whether the nearest .gitignore that speaks of a path leaves it out."""
    decided = (patterns.decide(path, is_directory) for patterns in reversed(ignoring))
    return next((ignored for ignored in decided if ignored is not None), False)


def _ignores_above(top: str) -> list[PathPatterns]:
    """The .gitignore files between the root of the repository and a directory. If they leave out that very directory,
    they say nothing about what is in it: it was asked for."""
    above = [str(folder) for folder in Path(top).parents]
    roots = [number for number, folder in enumerate([top, *above]) if os.path.exists(os.path.join(folder, ".git"))]
    if not roots:
        return []
    between = above[: roots[0]]
    repository = between[-1] if between else top
    rules = [PathPatterns(Path(repository), _lines(os.path.join(repository, ".git", "info", "exclude")))]
    rules += [_ignores_of(folder) for folder in reversed(between)]
    return [] if any(_is_ignored(folder, is_directory=True, ignoring=rules) for folder in (top, *between)) else rules


def _ignores_of(folder: str) -> PathPatterns:
    return PathPatterns(Path(folder), _lines(os.path.join(folder, ".gitignore")))


def _lines(path: str) -> tuple[str, ...]:
    try:
        # as names of files are read
        text = bytes_from_file(path).decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n")
    except OSError:
        return ()
    return tuple(line for line in text.split("\n") if line and not line.startswith("#"))
