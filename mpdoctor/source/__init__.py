"""Text → SourceFacts: parsing, names resolved to canonical API names, light data flow. No code of the user's
is run.

`reading` and `notebooks` parse; `prefilter` tells from a text which files need be looked at, `modules` which file an
import means. `interpreter` executes a syntax tree symbolically, `program` a script with what it imports, `project` many
files: they are imported where something is walked, and of most files nothing is. `existence_checks`, `constant_folding`
and `joining` are questions to nodes and values that the interpreter asks.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mpdoctor.facts.location import Location
from mpdoctor.program.collector import without_garbage_collection
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.source_record import Problem
from mpdoctor.project.project_folder import LEADS_OUT
from mpdoctor.source.modules import Files
from mpdoctor.source.reading import Source, source_from_text

__all__ = [
    "facts_from_file",
    "facts_from_text",
    "facts_with_imports",
    "facts_without_walking",
    "program_with_imports",
    "source_or_problem",
]


@without_garbage_collection()
def facts_from_text(text: str | bytes, path: str, root: Path | None = None) -> SourceFacts:
    """The facts of one text. First-party imports are looked up below `root`, or not at all without it."""
    from mpdoctor.source.program import execute_script, execute_the_rest, facts_from_module, new_state

    source = source_from_text(text, path)
    if isinstance(source, Problem):
        return SourceFacts(path, unreadable=source)
    state = new_state(root=root)
    module = execute_script(state, source, None)
    execute_the_rest(state, module)
    return facts_from_module(module)


def facts_from_file(path: Path, shown_as: str) -> SourceFacts:
    """The facts of one file, and of what it reaches in the first-party files that it imports."""
    return next(iter(facts_with_imports(path, shown_as).values()))


@without_garbage_collection()
def facts_with_imports(path: Path, shown_as: str | None = None, files: Files | None = None) -> dict[Path, SourceFacts]:
    """A script's facts first, then those of the first-party files that it imports, also through others, by absolute
    path.

    The script's facts hold the events of running it, in whichever of the files they lie. An imported file's
    hold those of its top level, and of the functions that the script never calls."""
    return program_with_imports(path, shown_as, files)[0]


@without_garbage_collection()
def program_with_imports(
    path: Path,
    shown_as: str | None = None,
    files: Files | None = None,
    given: Mapping[Path, str] = MappingProxyType({}),
) -> tuple[dict[Path, SourceFacts], SourceFacts]:
    """Like `facts_with_imports`, together with the facts of all files as if they stood in the script's file. `given`:
    how files are shown, by absolute path; of the others it follows from the script."""
    from mpdoctor.source.program import execute_script, execute_the_rest, facts_from_module, facts_of_program, new_state

    start, shown = path.absolute(), str(path) if shown_as is None else shown_as
    state = new_state(files, shown=given)
    source = source_or_problem(state.files, start, shown)
    if isinstance(source, Problem):
        unreadable = SourceFacts(shown, unreadable=source)
        return {start: unreadable}, unreadable
    execute_script(state, source, start)
    modules = dict(state.modules)
    for module in modules.values():
        execute_the_rest(state, module)
    facts = {path: facts_with_cells(facts_from_module(module), module.source) for path, module in modules.items()}
    links = ((link, os.path.relpath(link, start.parent)) for link in state.files.passed_over)
    passed_over = {
        link: SourceFacts(os.path.normpath(Path(shown).parent / below), passed_over=LEADS_OUT) for link, below in links
    }
    return facts | passed_over, facts[start] if facts[start].is_broken else facts_of_program(modules.values())


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
        return Problem(
            f"It cannot be read: {error.strerror or error}.", Location(shown_as, 1), "See to it that it can be read"
        )


def facts_with_cells(facts: SourceFacts, source: Source) -> SourceFacts:
    return dataclasses.replace(
        facts,
        cells=source.cells,
        broken_cells=source.broken_cells,
        passed_over=source.passed_over,
        program_text=source.program_text,
    )
