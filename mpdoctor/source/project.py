"""Many files, each understood by itself and by what it imports, and by nothing else: which other files are looked at
with it, in which order, and by how many processes, changes nothing in what is said of it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Call, Context
from mpdoctor.source.changes import Changes
from mpdoctor.source.importing import MOST_MODULES
from mpdoctor.source.modules import Files, package_of
from mpdoctor.source.outlines import Outlines
from mpdoctor.source.program import Program
from mpdoctor.source.reading import Source
from mpdoctor.source.scopes import Frame, Import, Module

_OF_ONE_WALK = (
    "stack", "followed", "visits", "spent", "walked", "_instantiated", "depth", "frame", "context", "changes",
    "last_order", "brought_in", "guarded",
)  # fmt: skip


class Project(Program):
    """Every module's top level is walked once, apart from all others. A file is then walked as a script, on top of what
    it imports; what that changes in other modules is taken back behind it."""

    def __init__(self, files: Files, shown: Mapping[Path, str], outlines: Outlines) -> None:
        """
        shown
            How each of the given files is shown, by absolute path.
        """
        super().__init__(files, given=shown)
        self._outlines = outlines
        self._changes: dict[Path, Changes] = {}
        self._unforeseen = 0

    def walk(self, source: Source, path: Path, guarded: bool = False) -> SourceFacts:
        """The facts of one file. Ask them `as_walked`. `guarded`: see `SourceFacts.is_guarded`."""
        with self._apart() as self._changes[path]:
            self.guarded = guarded
            module = self.module = self.new_module(source, path, "__main__", None)
            for one in self._outlines.imported_by(path):
                if one not in self.modules:
                    self.load(one, "")
            self._within_bounds(module, self.walk_module)
            self.walk_the_rest(module)
            return self.facts(module)

    def as_walked(self, path: Path) -> AbstractContextManager[None]:
        """Imported classes hold what this file made of them as long as this is entered."""
        return self._changes[path].in_place() if path in self._changes else nullcontext()

    def load(self, path: Path, dotted: str) -> Module | None:
        """Of files that the outlines do not hold only a few: it is a library's own directory that is looked at."""
        if path not in self._outlines:
            self._unforeseen += 1
            if self._unforeseen > MOST_MODULES:
                return None
        return super().load(path, dotted)

    def walk_imported(self, source: Source, path: Path, dotted: str) -> Module:
        package = package_of(path)[1]
        name = package if path.name == "__init__.py" else ".".join(filter(None, (package, path.stem)))
        with self._apart():
            module = self.modules[path] = self.new_module(source, path, name, None)
            self._within_bounds(module, self.walk_module)
        return module

    def policies_of(self, imported: Module, by: Import) -> Iterator[Call]:
        """It was walked at another time: its policy is in force from the import on, and where the import is."""
        for call in imported.policy_calls:
            context = dataclasses.replace(
                by.context, branches=(*by.context.branches, *call.context.branches), callers=call.context.callers
            )
            yield dataclasses.replace(call, context=context, order=by.order)

    @contextmanager
    def _apart(self) -> Iterator[Changes]:
        """A walk that sees nothing of those that are under way, and leaves nothing behind for them."""
        outer = {name: vars(self)[name] for name in _OF_ONE_WALK}
        self.stack, self.walked, self._instantiated = [], set(), set()
        self.visits, self.spent = Counter(), Counter()
        self.depth, self.frame, self.context, self.guarded = 0, Frame(), Context(), False
        changes = self.changes = Changes()
        with outer["changes"].suspended():
            try:
                yield changes
            finally:
                changes.take_back()
                vars(self).update(outer)
