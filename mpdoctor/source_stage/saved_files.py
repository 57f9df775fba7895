"""Which model files the programs of a project write, and which other programs may mean the same ones."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from mpdoctor.program.saved_file import SavedFile
from mpdoctor.program.source_facts import SourceFacts


class SavedFiles:
    """The model files that the programs of a project write. `policies`: for each path as shown, what the files that
    import it say of the global policy."""

    def __init__(self, project: Collection[SourceFacts], policies: Mapping[str, tuple[str | None, ...]]) -> None:
        files = [(of, _as_reached(file, policies.get(of.path, ()))) for of in project for file in of.files_saved]
        reached = {file.saved_at for _, file in files if file.is_reached}
        self._written = [(of.path, file) for of, file in files if file.is_reached or file.saved_at not in reached]

    def written_beside(self, facts: SourceFacts) -> tuple[SavedFile, ...]:
        """The model files that other programs write and that this one may mean: the path stands in a file that it
        imports, or in its own text and in one directory with it."""
        files = (file for program, file in self._written if program != facts.path and _may_mean(facts, program, file))
        return tuple(dict.fromkeys(files))


def users_of_files(
    writers: Iterable[SourceFacts], shown: Mapping[Path, str], bytes_of: Callable[[Path], bytes]
) -> Iterator[Path]:
    """Which of the files `shown` name a model file that a program in the same directory writes."""
    names: dict[str, set[bytes]] = {}
    for facts in writers:
        basenames = {posixpath.basename(file.path).encode(errors="surrogatepass") for file in facts.files_saved}
        names.setdefault(posixpath.dirname(facts.path), set()).update(basenames)
    for path, shown_as in shown.items() if any(names.values()) else ():
        if any(name in bytes_of(path) for name in names.get(posixpath.dirname(shown_as), ())):
            yield path


def _may_mean(facts: SourceFacts, program: str, file: SavedFile) -> bool:
    if file.written_at.path in (facts.path, *facts.imports):
        return True
    is_beside = posixpath.dirname(program) == posixpath.dirname(facts.path)
    return is_beside and posixpath.basename(file.path) in facts.text


def _as_reached(file: SavedFile, policies: tuple[str | None, ...]) -> SavedFile:
    return dataclasses.replace(file, policies=()) if policies and file.is_set_by_importers else file
