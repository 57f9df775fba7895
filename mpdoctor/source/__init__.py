"""Text → SourceFacts: parsing, names resolved to canonical API names, light data flow. No code of the user's
is run.

It is a small symbolic interpreter. `reading` parses; `expressions`, `objects`, `following`, `definitions` and
`statements` are layers of one walker, each knowing more of Python than the one before; `program` starts it
and follows imports.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from mpdoctor.facts.location import Location
from mpdoctor.facts.source import Problem, SourceFacts
from mpdoctor.source.modules import Files
from mpdoctor.source.program import Program
from mpdoctor.source.reading import source_from_text

__all__ = ["Files", "facts_from_file", "facts_from_text", "facts_with_imports"]


def facts_from_text(text: str | bytes, path: str, root: Path | None = None) -> SourceFacts:
    """The facts of one text. First-party imports are looked up below `root`, or not at all without it."""
    source = source_from_text(text, path)
    if isinstance(source, Problem):
        return SourceFacts(path, unreadable=source)
    place = None if root is None else root / "-"
    return Program(source, place).facts()


def facts_from_file(path: Path, shown_as: str, files: Files | None = None) -> SourceFacts:
    """The facts of one file and of what it reaches in the first-party files that it imports. Give the same
    `files` for all files of a directory, so that each is parsed once."""
    files = files or Files()
    try:
        source = files.source(path, shown_as)
    except OSError as error:
        return SourceFacts(shown_as, unreadable=_unreadable(error, shown_as))
    if isinstance(source, Problem):
        return SourceFacts(shown_as, unreadable=source)
    return Program(source, path, files).facts()


def facts_with_imports(path: Path, shown_as: str | None = None) -> tuple[SourceFacts, ...]:
    """A script and the first-party files that it imports, also through others: the script's facts first.

    The imported files' facts have `is_imported`; if any of the files shows mixed precision, all have
    `assume_mixed`."""
    files = Files()
    shown_as = str(path) if shown_as is None else shown_as
    try:
        source = files.source(path, shown_as)
    except OSError as error:
        return (SourceFacts(shown_as, unreadable=_unreadable(error, shown_as)),)
    if isinstance(source, Problem):
        return (SourceFacts(shown_as, unreadable=source),)
    program = Program(source, path, files)
    found = [program.facts()]
    for imported, shown in program.shown_modules:
        one = facts_from_file(imported, shown, files)
        found.append(dataclasses.replace(one, is_imported=True))
    if any(one.shows_mixed_precision for one in found):
        found = [dataclasses.replace(one, assume_mixed=True) for one in found]
    return tuple(found)


def _unreadable(error: OSError, shown_as: str) -> Problem:
    return Problem(f"It cannot be read: {error.strerror or error}.", Location(shown_as, 1))
