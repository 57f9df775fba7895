"""The files of one program (or of one directory), walked together: each is read and walked once, whoever
imports it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mpdoctor.facts.breakdown import breakdown_from_error
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Call, Context, Known
from mpdoctor.source.declared import declared_keras
from mpdoctor.source.importing import Importing
from mpdoctor.source.reading import Source
from mpdoctor.source.recording import MOST_EVENTS, Enough, Events, joined_events
from mpdoctor.source.scopes import Frame, Import, Module

_FRAMES = 6000  # Python frames of the deepest walk: DEEPEST levels in each of DEEPEST_CALL functions, some 3 each


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A walk makes one growing graph and no garbage; the collector would go over it again and again (300,000
    lines: 65 s with it, 18 s without). What was made meanwhile counts as old behind it, without being gone over."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.unfreeze()
            gc.enable()


class Program(Importing):
    """Walk files with `start`, then what nobody called with `walk_the_rest`; then ask for the facts of
    each."""

    def start(self, source: Source, path: Path | None) -> Module:
        """Run a file as a script, unless another file imported it before. `path` is None for text that is no
        file."""
        module = None if path is None else self.modules.get(path)
        if module is None:
            module = self.new_module(source, path, "__main__", None)
            if path is not None:
                self.modules[path] = module
            self._within_bounds(module, lambda one: self.walk_module(one))
        return module

    def walk_the_rest(self, module: Module) -> None:
        """Functions of this module that nobody called, and its `if __name__ == "__main__"` if it was
        imported."""
        self._within_bounds(module, self._walk_the_rest)

    def facts(self, module: Module) -> SourceFacts:
        """Its own events, and of the modules that it imports those that set a policy."""
        imported = list(_imported(module))
        breakdowns = (*module.breakdowns, *(each for one, _ in imported for each in one.breakdowns))
        if module.breakdowns:
            return SourceFacts(module.source.path, breakdowns=breakdowns)
        policies = Events(calls=[call for one, by in imported for call in self.policies_of(one, by)])
        events = joined_events((module.events, module.later, policies))
        return SourceFacts(
            module.source.path,
            module.source.text,
            tuple(events.uses),
            tuple(events.calls),
            tuple(events.reads),
            tuple(events.writes),
            tuple(events.operations),
            tuple(events.withs),
            tuple(events.returns),
            tuple(module.classes),
            tuple(module.functions),
            tuple(one.source.path for one, _ in imported),
            *_imports_by_guard(module),
            declared_keras=declared_keras(module.source.path, events.uses, events.calls, events.writes),
            package=module.package,
            incomplete=bool(module.incomplete),
            breakdowns=breakdowns,
        )

    def policies_of(self, imported: Module, by: Import) -> Iterable[Call]:
        """Where a module's top level sets the global policy, for the one that imports it, perhaps through others."""
        return imported.policy_calls

    def _within_bounds(self, module: Module, walk: Callable[[Module], None]) -> None:
        """A program that is too large or too deep, or that we break on, ends its own walk, and no other file's."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _FRAMES))
        self.last_order, self.followed = self.order + MOST_EVENTS, 0
        self.brought_in = 0
        self.visits.clear()
        self.spent.clear()
        try:
            walk(module)
        except (Enough, RecursionError):
            module.incomplete.append(True)
        except Exception as error:
            module.breakdowns.append(breakdown_from_error(module.source.path, error))
        finally:
            sys.setrecursionlimit(limit)
            self.stack.clear()
            self.depth, self.frame, self.context = 0, Frame(), Context()

    def _walk_the_rest(self, module: Module) -> None:
        self.module, self.scope, self.events = module, module.scope, module.later
        self._qualified, self._owner = [], None
        for body in module.main_blocks:
            self._new_run(reached=True)
            module.scope.names["__name__"] = Known(module.location, "__main__")
            self.block(body)
        done = 0
        while done < len(module.closures):
            closure = module.closures[done]
            done += 1
            if id(closure) not in self.walked:
                owner = closure.facts.owner
                is_framework = owner is not None and owner.kind is not None and id(owner) in self.instantiated
                self._new_run(reached=is_framework)
                self.walk_alone(closure)

    def _new_run(self, reached: bool) -> None:
        self.runs += 1
        self.context = Context(reached=reached, run=self.runs, guarded=self.guarded)


def _imports_by_guard(module: Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Paths of what it imports itself: for certain, and where it asks first whether that works."""
    others = [one for one in module.imports.values() if one.module.source.path != module.source.path]
    certain = (one.module.source.path for one in others if not one.context.guarded)
    return tuple(certain), tuple(one.module.source.path for one in others if one.context.guarded)


def _imported(module: Module) -> Iterator[tuple[Module, Import]]:
    """The first-party modules that it imports, also through others, each once; and its own import that leads there."""
    seen, waiting = {module.source.path}, [(one, one) for one in module.imports.values()]
    while waiting:
        one, by = waiting.pop(0)
        if one.module.source.path not in seen:
            seen.add(one.module.source.path)
            yield one.module, by
            waiting.extend((further, by) for further in one.module.imports.values())
