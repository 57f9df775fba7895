"""Stage 1: source files, walked as far as a finding could be in them, and judged, on all cores.

A file is walked if its text may show mixed precision (or be wrong without any), if it imports a file that does, or if
one that does imports it. Of the others only their syntax is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.source.outlines import Outlines, outlines_from_texts
from mpdoctor.source_stage.desk import Desk, Judged, Order

if TYPE_CHECKING:
    from mpdoctor.source_stage.elsewhere import DeskElsewhere

WORTH_A_PROCESS = 400_000  # bytes of source: fewer are walked before another process is up


class SourceStage:
    """The source of a run. `facts` holds those of every file, by path as shown, without their events, which stay where
    they were walked."""

    def __init__(
        self,
        files: Mapping[Path, str],
        unsaved: Mapping[Path, bytes] = MappingProxyType({}),
        *,
        with_imports: bool = False,
        assume_mixed: bool = False,
    ) -> None:
        """
        files
            How each is shown, by absolute path.
        unsaved
            What to take in place of what a file holds.
        with_imports
            The files are one program: all that it imports is walked and judged with it.
        """
        self._files = dict(files)
        self._assume_mixed = assume_mixed
        self._desk_of: dict[Path, int] = {}
        self._facts: dict[Path, SourceFacts] = {}
        self._mixed: set[Path] = set()
        if with_imports:
            self._outlines = Outlines()
            self._desks = _desks(1, self._files, unsaved, self._outlines)
            self._hand_out("walk_with_imports", [list(files)])
        else:
            self._outlines = outlines_from_texts({path: _text(path, unsaved) for path in files})
            size = sum(one.size for one in self._outlines.values() if one.names_framework)
            count = min(os.cpu_count() or 1, 1 + size // WORTH_A_PROCESS)
            self._desks = _desks(count, self._files, unsaved, self._outlines)
            self._walk_what_matters()
        self.facts = {facts.path: facts for facts in (self._facts[path] for path in self._files)}
        self._imported = {path for facts in self.facts.values() for path in facts.imports}
        self._imported |= {self._files[path] for one in self._outlines.values() for path in one.imports}
        self._reached = {path for mixed in self._mixed for path in self._facts[mixed].imports}
        self._paths = {facts.path: path for path, facts in self._facts.items()}

    def judge(self, keras: Callable[[str], Keras], codes: frozenset[str], paths: Collection[str]) -> Judged:
        """What the rules of these codes find in these files (paths as shown), each by its own Keras."""
        orders: list[list[Order]] = [[] for _ in self._desks]
        for shown_as in paths:
            path = self._paths[shown_as]
            changes = {
                "keras": keras(shown_as),
                "assume_mixed": self._assume_mixed,
                "is_imported": shown_as in self._imported,
                "mixed_elsewhere": shown_as in self._reached,
            }
            orders[self._desk_of[path]].append((path, changes))
        found: dict[Path, Judged] = {}
        for answer in self._ask("judge", [(order, codes) for order in orders]):
            found.update(answer)
        return [item for shown_as in paths for item in found[self._paths[shown_as]]]

    def _walk_what_matters(self) -> None:
        outlines = self._outlines
        if self._assume_mixed:
            self._walk(path for path, one in outlines.items() if one.may_speak or one.may_compute)
        else:
            self._walk(path for path, one in outlines.items() if one.may_speak)
            self._walk(path for path, one in outlines.items() if one.imports & self._mixed)
            reached = outlines.reached_from(self._mixed)
            self._walk(p for p in reached if outlines[p].may_compute or outlines[p].imports & self._mixed)
        self._share_out("read", [path for path in self._files if path not in self._facts])

    def _walk(self, paths: Iterable[Path]) -> None:
        wanted = set(paths)
        self._share_out("walk", [path for path in self._files if path in wanted and path not in self._facts])

    def _share_out(self, what: str, paths: list[Path]) -> None:
        """Neighbours go to one desk: they import the same files."""
        total, before = sum(self._outlines[path].size for path in paths), 0
        portions: list[list[Path]] = [[] for _ in self._desks]
        for path in paths:
            desk = min(before * len(portions) // max(total, 1), len(portions) - 1)
            portions[desk].append(path)
            before += self._outlines[path].size
        self._hand_out(what, portions)

    def _hand_out(self, what: str, portions: list[list[Path]]) -> None:
        for desk, answer in enumerate(self._ask(what, [(portion,) for portion in portions])):
            for path, (facts, is_mixed) in answer.items():
                self._files.setdefault(path, facts.path)
                self._facts[path] = facts
                self._desk_of[path] = desk
                if is_mixed:
                    self._mixed.add(path)

    def _ask(self, what: str, arguments: list[tuple[Any, ...]]) -> Iterator[Any]:
        """All desks at once."""
        for desk, given in zip(self._desks, arguments, strict=True):
            desk.ask(what, given)
        for desk in self._desks:
            yield desk.answer()


class DeskHere:
    """A desk of this process."""

    def __init__(self, *given: Any) -> None:
        self._desk = Desk(*given)

    def ask(self, what: str, arguments: tuple[Any, ...]) -> None:
        self._answer = getattr(self._desk, what)(*arguments)

    def answer(self) -> Any:
        return self._answer


def _desks(count: int, *given: Any) -> Sequence[DeskHere | DeskElsewhere]:
    """One here, or several elsewhere: what those built goes with their process, and is not taken down piece by piece,
    which would take as long as to judge it."""
    if count == 1:
        return [DeskHere(*given)]
    from mpdoctor.source_stage.elsewhere import DeskElsewhere

    return [DeskElsewhere(*given) for _ in range(count)]


def _text(path: Path, unsaved: Mapping[Path, bytes]) -> bytes:
    """b"" where it can't be read: the desk that reads it says why."""
    try:
        return unsaved[path] if path in unsaved else path.read_bytes()
    except OSError:
        return b""
