"""Text → SourceFacts: parsing, names resolved to canonical API names, light data flow. No code of the user's
is run.

It is a small symbolic interpreter. `reading` parses. `recording`, `walker`, `containers`, `expressions`,
`objects`, `known_calls`, `following`, `definitions`, `assignments`, `statements`, `importing` and `program`
are layers of one walker, each knowing more of Python than the one before; `project` is for many files.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mpdoctor.facts.location import Location
from mpdoctor.program.source_facts import Problem, SourceFacts
from mpdoctor.project.project_folder import LEADS_OUT
from mpdoctor.source.modules import Files
from mpdoctor.source.program import Program, without_garbage_collection
from mpdoctor.source.reading import Source, source_from_text

__all__ = ["facts_from_file", "facts_from_text", "facts_with_imports", "facts_without_walking", "source_or_problem"]


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
    return next(iter(facts_with_imports(path, shown_as).values()))


@without_garbage_collection()
def facts_with_imports(
    path: Path,
    shown_as: str | None = None,
    files: Files | None = None,
    given: Mapping[Path, str] = MappingProxyType({}),
) -> dict[Path, SourceFacts]:
    """A script's facts first, then those of the first-party files that it imports, also through others, by absolute
    path.

    The script's facts hold the events of running it, in whichever of the files they lie. An imported file's
    hold those of its top level, and of the functions that the script never calls. `given`: how files are shown, by
    absolute path; of the others it follows from the script."""
    start, shown = path.absolute(), str(path) if shown_as is None else shown_as
    program = Program(files, given=given)
    source = source_or_problem(program.files, start, shown)
    if isinstance(source, Problem):
        return {start: SourceFacts(shown, unreadable=source)}
    program.start(source, start)
    modules = dict(program.modules)
    for module in modules.values():
        program.walk_the_rest(module)
    facts = {path: facts_with_cells(program.facts(module), module.source) for path, module in modules.items()}
    links = ((link, os.path.relpath(link, start.parent)) for link in program.files.passed_over)
    return facts | {
        link: SourceFacts(os.path.normpath(Path(shown).parent / below), passed_over=LEADS_OUT) for link, below in links
    }


def facts_without_walking(files: Files, path: Path, shown_as: str) -> SourceFacts:
    """What there is to say of a file that is only read: its text, or why that can't be read."""
    source = source_or_problem(files, path, shown_as)
    if isinstance(source, Problem):
        return SourceFacts(shown_as, unreadable=source)
    return facts_with_cells(SourceFacts(shown_as, source.text), source)


def source_or_problem(files: Files, path: Path, shown_as: str) -> Source | Problem:
    try:
        return files.source(path, shown_as)
    except OSError as error:
        return Problem(f"It cannot be read: {error.strerror or error}.", Location(shown_as, 1))


def facts_with_cells(facts: SourceFacts, source: Source) -> SourceFacts:
    return dataclasses.replace(
        facts, cells=source.cells, broken_cells=source.broken_cells, passed_over=source.passed_over
    )
