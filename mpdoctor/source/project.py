"""Many files, each executed on top of what it imports. Nothing said of a file depends on which others are looked at
with it, in which order, or by how many processes."""

from __future__ import annotations

import dataclasses
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.source.import_graph import Outlines
from mpdoctor.source.interpreter.imports import MOST_MODULES, execute_module, load_as, new_module
from mpdoctor.source.interpreter.state.interpreter_state import State, Walk
from mpdoctor.source.interpreter.state.scopes import Frame, Import, Module
from mpdoctor.source.interpreter.state.side_effects import SideEffects
from mpdoctor.source.modules import Files, package_of
from mpdoctor.source.program import execute_the_rest, facts_from_module, new_state, within_bounds
from mpdoctor.source.reading import Source


class Project:
    """The files of a project. The top level of each module is walked once, apart from all others. Each file is then
    walked as a script on top of what it imports; changes that this makes in other modules are undone afterwards."""

    def __init__(self, files: Files, shown: Mapping[Path, str], outlines: Outlines) -> None:
        """`shown`: how each of the given files is shown, by absolute path."""
        self._state = new_state(files, shown=shown, load=self._load)
        self._outlines = outlines
        self._side_effects: dict[Path, SideEffects] = {}
        self._reading: dict[Path, dict[str, str]] = {}  # the modules that read files of settings, and these
        self._unforeseen = 0

    def walk(self, source: Source, path: Path, guarded: bool = False) -> SourceFacts:
        """The facts of one file. Ask them `as_walked`. `guarded`: see `SourceFacts.is_guarded`."""
        state = self._state
        with _separate_walk(state, guarded) as self._side_effects[path]:
            module = state.module = state.walk.script = new_module(state, source, path, "__main__", None)
            for imported in self._outlines.imported_by(path, without=state.modules):
                if imported not in state.modules:
                    self._load(state, imported, "")
            within_bounds(state, module, execute_module)
            execute_the_rest(state, module)
            facts = facts_from_module(module, _policies_from_import_on)
            return dataclasses.replace(facts, settings_read=self._settings_read(path))

    def _settings_read(self, path: Path) -> tuple[tuple[str, str], ...]:
        """The files of settings that this file, or one that it imports, may read, with their digests."""
        imported = self._outlines.imported_by(path) if self._reading else ()
        read = [self._reading[module] for module in imported if module in self._reading]
        return tuple(sorted(ChainMap(self._state.walk.settings_read, *read).items()))

    def as_walked(self, path: Path) -> AbstractContextManager[None]:
        """Imported classes hold what this file made of them as long as this is entered."""
        return self._side_effects[path].in_place() if path in self._side_effects else nullcontext()

    def _load(self, state: State, path: Path, dotted: str) -> Module | None:
        """The module in a file. Of files outside of the outlines only a few are loaded: they belong to a library's own
        directory."""
        if path not in self._outlines:
            self._unforeseen += 1
            if self._unforeseen > MOST_MODULES:
                return None
        module = load_as(state, path, dotted, _execute_imported)
        if module is not None and module.settings_read:
            self._reading[path] = module.settings_read
        return module


def _execute_imported(state: State, source: Source, path: Path, dotted: str) -> Module:
    package = package_of(path)[1]
    name = package if path.name == "__init__.py" else ".".join(filter(None, (package, path.stem)))
    with _separate_walk(state):
        module = state.modules[path] = new_module(state, source, path, name, None)
        within_bounds(state, module, execute_module)
        module.settings_read.update(state.walk.settings_read)
    return module


def _policies_from_import_on(imported: Module, by: Import) -> Iterator[Call]:
    """The calls by which an imported module sets the global policy, moved to the place of the import: from there on the
    policy is in force."""
    for call in imported.policy_calls:
        context = dataclasses.replace(
            by.context, branches=(*by.context.branches, *call.context.branches), callers=call.context.callers
        )
        yield dataclasses.replace(call, context=context, order=by.order)


@contextmanager
def _separate_walk(state: State, guarded: bool = False) -> Iterator[SideEffects]:
    """A walk that sees nothing of the walks that are under way, and leaves nothing behind for them."""
    outer, position = state.walk, state.position()
    state.walk, state.depth, state.frame, state.context = Walk(guarded), 0, Frame(), Context()
    side_effects = state.walk.side_effects
    with outer.side_effects.suspended():
        try:
            yield side_effects
        finally:
            side_effects.take_back()
            state.walk = outer
            state.go_back_to(position)  # which is in the middle of an importer, where files import each other
