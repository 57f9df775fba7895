"""Text → SourceFacts: parsing, names resolved to canonical API names, light data flow. No code of the user's
is run.

It is a small symbolic interpreter. `reading` parses. `recording`, `walker`, `containers`, `expressions`,
`objects`, `known_calls`, `following`, `definitions`, `assignments`, `statements`, `importing` and `program`
are layers of one walker, each knowing more of Python than the one before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from mpdoctor.facts.source import Problem, SourceFacts
from mpdoctor.source.portions import Portions
from mpdoctor.source.program import Program, without_garbage_collection
from mpdoctor.source.reading import source_from_text

__all__ = ["facts_from_file", "facts_from_files", "facts_from_text", "facts_with_imports"]


@without_garbage_collection()
def facts_from_text(text: str | bytes, path: str, root: Path | None = None) -> SourceFacts:
    """The facts of one text. First-party imports are looked up below `root`, or not at all without it."""
    source = source_from_text(text, path)
    if isinstance(source, Problem):
        return SourceFacts(path, unreadable=source)
    program = Program(root=root)
    module = program.start(source, None)
    program.walk_the_rest(module)
    return program.facts(module)


def facts_from_file(path: Path, shown_as: str) -> SourceFacts:
    """The facts of one file, and of what it reaches in the first-party files that it imports."""
    return facts_with_imports(path, shown_as)[0]


def facts_with_imports(
    path: Path, shown_as: str | None = None, unsaved: Mapping[Path, bytes] = MappingProxyType({})
) -> tuple[SourceFacts, ...]:
    """A script's facts first, then those of the first-party files that it imports, also through others.

    The script's facts hold the events of running it, in whichever of the files they lie. An imported file's
    hold those of its top level, and of the functions that the script never calls; they are marked
    `is_imported`. `unsaved`: what to take in place of what a file holds, by absolute path."""
    shown = str(path) if shown_as is None else shown_as
    return _told_of_each_other(Portions(unsaved).walked({path.absolute(): shown}, with_imports=True).values())


def facts_from_files(
    files: Iterable[tuple[Path, str]], unsaved: Mapping[Path, bytes] = MappingProxyType({})
) -> tuple[SourceFacts, ...]:
    """The facts of many files (path, and how it is shown), in their order: those of a directory, say. Files
    that import one another are understood together, and each is read once. `unsaved` as above."""
    return _told_of_each_other(Portions(unsaved).walked({path.absolute(): shown for path, shown in files}).values())


def _told_of_each_other(found: Collection[SourceFacts]) -> tuple[SourceFacts, ...]:
    """Mixed precision that a file shows counts for those that it imports, too: they compute in it."""
    imported = {path for facts in found for path in facts.imports}
    mixed = {facts.path for facts in found if facts.mixed_precision_signs}
    reached = {path for facts in found if facts.path in mixed for path in facts.imports}
    return tuple(
        dataclasses.replace(
            facts,
            is_imported=facts.path in imported,
            mixed_elsewhere=facts.path in reached,
        )
        for facts in found
    )
