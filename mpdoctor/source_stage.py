"""Stage 1: source files, walked as far as a finding could be in them, and judged, on all cores.

A file is walked if its text may show mixed precision (or be wrong without any), if it imports a file that does, or if
one that does imports it. Of the others only their syntax is looked at.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed, Finding
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.source.outlines import outlines_from_texts, reached_from
from mpdoctor.source.portions import Portions
from mpdoctor.source.program import without_garbage_collection

WORTH_A_PROCESS = 400_000  # bytes of source: fewer are walked before another process is up

Judged = list[Finding | Crashed]
Order = tuple[Path, dict[str, Any]]  # a file, and what the facts of it are to say besides


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
            self._desks = _desks(1, unsaved)
            self._outlines = {}
            self._hand_out("walk_with_imports", [dict(files)])
        else:
            self._outlines = outlines_from_texts({path: _text(path, unsaved) for path in files})
            size = sum(one.size for one in self._outlines.values() if one.names_framework)
            self._desks = _desks(min(os.cpu_count() or 1, 1 + size // WORTH_A_PROCESS), unsaved)
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
            self._walk(path for path, one in outlines.items() if one.names_framework)
        else:
            self._walk(path for path, one in outlines.items() if one.may_speak)
            self._walk(path for path, one in outlines.items() if one.imports & self._mixed)
            reached = reached_from(self._mixed, outlines)
            self._walk(p for p in reached if outlines[p].names_framework or outlines[p].imports & self._mixed)
        self._share_out("read", [path for path in self._files if path not in self._facts])

    def _walk(self, paths: Iterable[Path]) -> None:
        wanted = set(paths)
        self._share_out("walk", [path for path in self._files if path in wanted and path not in self._facts])

    def _share_out(self, what: str, paths: list[Path]) -> None:
        """Neighbours go to one desk: they import the same files."""
        total, before = sum(self._outlines[path].size for path in paths), 0
        portions: list[dict[Path, str]] = [{} for _ in self._desks]
        for path in paths:
            desk = min(before * len(portions) // max(total, 1), len(portions) - 1)
            portions[desk][path] = self._files[path]
            before += self._outlines[path].size
        self._hand_out(what, portions)

    def _hand_out(self, what: str, portions: list[dict[Path, str]]) -> None:
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


class Desk:
    """One process' share of the files: it walks them, keeps their facts, and judges them."""

    def __init__(self, unsaved: Mapping[Path, bytes]) -> None:
        self._portions = Portions(unsaved)
        self._facts: dict[Path, SourceFacts] = {}

    @without_garbage_collection()
    def read(self, files: Mapping[Path, str]) -> dict[Path, tuple[SourceFacts, bool]]:
        self._facts |= (found := {path: self._portions.unwalked(path, shown) for path, shown in files.items()})
        return {path: (facts, False) for path, facts in found.items()}

    def walk(self, files: Mapping[Path, str], with_imports: bool = False) -> dict[Path, tuple[SourceFacts, bool]]:
        """The facts without their events, and whether these show mixed precision."""
        self._facts |= (found := self._portions.walked(files, with_imports))
        return {path: (_without_events(facts), bool(facts.mixed_precision_signs)) for path, facts in found.items()}

    def walk_with_imports(self, files: Mapping[Path, str]) -> dict[Path, tuple[SourceFacts, bool]]:
        return self.walk(files, with_imports=True)

    @without_garbage_collection()
    def judge(self, orders: list[Order], codes: frozenset[str]) -> dict[Path, Judged]:
        return {path: self._judged(path, changes, codes) for path, changes in orders}

    def _judged(self, path: Path, changes: dict[str, Any], codes: frozenset[str]) -> Judged:
        facts = dataclasses.replace(self._facts[path], **changes)
        return list(findings_from_facts("in_source", facts, facts.keras, lambda rule: rule.code in codes))


class DeskHere:
    """A desk of this process."""

    def __init__(self, unsaved: Mapping[Path, bytes]) -> None:
        self._desk = Desk(unsaved)

    def ask(self, what: str, arguments: tuple[Any, ...]) -> None:
        self._answer = getattr(self._desk, what)(*arguments)

    def answer(self) -> Any:
        return self._answer


class DeskElsewhere:
    """A desk of a process of its own, which ends with this one."""

    def __init__(self, unsaved: Mapping[Path, bytes]) -> None:
        self._line, far_end = multiprocessing.Pipe()
        process = multiprocessing.Process(target=_serve, args=(far_end, dict(unsaved)), daemon=True)
        process.start()
        far_end.close()

    def ask(self, what: str, arguments: tuple[Any, ...]) -> None:
        self._line.send((what, arguments))

    def answer(self) -> Any:
        """Raises RuntimeError with the other process' traceback where that broke."""
        broke, answer = self._line.recv()
        if broke:
            raise RuntimeError(answer)
        return answer


def _serve(line: Connection, unsaved: Mapping[Path, bytes]) -> None:
    desk = Desk(unsaved)
    while True:
        try:
            what, arguments = line.recv()
        except EOFError:  # the other end has all that it wanted
            return
        try:
            line.send((False, getattr(desk, what)(*arguments)))
        except Exception:
            line.send((True, traceback.format_exc()))


def _desks(count: int, unsaved: Mapping[Path, bytes]) -> list[DeskHere | DeskElsewhere]:
    """One here, the others elsewhere: those are asked first, so that all work at once."""
    return [*(DeskElsewhere(unsaved) for _ in range(count - 1)), DeskHere(unsaved)]


def _without_events(facts: SourceFacts) -> SourceFacts:
    return dataclasses.replace(
        facts, uses=(), calls=(), reads=(), writes=(), operations=(), withs=(), returns=(), classes=(), functions=()
    )


def _text(path: Path, unsaved: Mapping[Path, bytes]) -> bytes:
    """b"" where it can't be read: the desk that reads it says why."""
    try:
        return unsaved[path] if path in unsaved else path.read_bytes()
    except OSError:
        return b""
