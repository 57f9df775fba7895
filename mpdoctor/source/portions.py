"""Files walked in portions: what one process understands of a directory, as far as it was asked to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from mpdoctor.facts.location import Location
from mpdoctor.facts.source import Problem, SourceFacts
from mpdoctor.source.modules import Files
from mpdoctor.source.program import Program, without_garbage_collection
from mpdoctor.source.reading import Source


class Portions:
    """Each file is walked once, whichever portion it was part of; files that import one another are understood
    together. `unsaved`: what to take in place of what a file holds, by absolute path."""

    def __init__(self, unsaved: Mapping[Path, bytes] = MappingProxyType({})) -> None:
        self._unsaved = unsaved
        self._files = Files(unsaved)
        self._program = Program(self._files)

    def unwalked(self, path: Path, shown_as: str) -> SourceFacts:
        """What there is to say of a file that is not walked: its text, or why it can't be read. Its tree is not kept,
        which would take far more room."""
        files = self._files if self._files.holds(path) else Files(self._unsaved)
        source = _source(files, path, shown_as)
        if isinstance(source, Problem):
            return SourceFacts(shown_as, unreadable=source)
        return _with_what_was_read(SourceFacts(shown_as, source.text), source)

    @without_garbage_collection()
    def walked(self, starts: Mapping[Path, str], with_imports: bool = False) -> dict[Path, SourceFacts]:
        """The facts of these files (how each is shown, by absolute path); `with_imports`: and of those that they
        import."""
        problems: dict[Path, SourceFacts] = {}
        for path, shown_as in starts.items():
            source = _source(self._files, path, shown_as)
            if isinstance(source, Problem):
                problems[path] = SourceFacts(shown_as, unreadable=source)
            else:
                self._program.start(source, path)
        modules = self._program.modules
        paths: Iterable[Path] = dict.fromkeys((*starts, *modules)) if with_imports else starts
        for path in paths:
            if path not in problems:
                self._program.walk_the_rest(modules[path])
        return {path: problems[path] if path in problems else self._facts(path) for path in paths}

    def _facts(self, path: Path) -> SourceFacts:
        module = self._program.modules[path]
        return _with_what_was_read(self._program.facts(module), module.source)


def _source(files: Files, path: Path, shown_as: str) -> Source | Problem:
    try:
        return files.source(path, shown_as)
    except OSError as error:
        return Problem(f"It cannot be read: {error.strerror or error}.", Location(shown_as, 1))


def _with_what_was_read(facts: SourceFacts, source: Source) -> SourceFacts:
    return dataclasses.replace(
        facts, cells=source.cells, broken_cells=source.broken_cells, passed_over=source.passed_over
    )
