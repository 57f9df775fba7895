"""All desks of a run: one here, or several in processes of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpdoctor.facts.source import SourceFacts
from mpdoctor.source_stage.desk import Desk, Judged, Order

if TYPE_CHECKING:
    from mpdoctor.source_stage.elsewhere import DeskElsewhere

PORTIONS = 8  # for each desk: who is done early takes another one


class Desks:
    """They are set up when there is something to do. `given`: what a `Desk` takes."""

    def __init__(self, count: int, *given: Any) -> None:
        self._count, self._given = count, given
        self._desk_of: dict[Path, DeskHere | DeskElsewhere] = {}

    def know(self, path: Path) -> bool:
        """Whether one of them has looked at this file."""
        return path in self._desk_of

    def all_do(
        self, what: str, paths: Sequence[Path], size_of: Callable[[Path], int]
    ) -> Iterator[tuple[Path, tuple[SourceFacts, bool]]]:
        if not paths:
            return
        waiting = deque(_portions(paths, size_of, 1 if self._count == 1 else self._count * PORTIONS))
        free = list(self._desks)
        busy: list[DeskHere | DeskElsewhere] = []
        while waiting or busy:
            while waiting and free:
                busy.append(desk := free.pop(0))
                desk.ask(what, (waiting.popleft(),))
            for desk in self._ready(busy):
                answer = desk.answer()
                self._desk_of |= dict.fromkeys(answer, desk)
                yield from answer.items()
                busy.remove(desk)
                free.append(desk)

    def judge(self, orders: Mapping[Path, Order]) -> dict[Path, Judged]:
        """Each file where it was looked at."""
        by_desk: dict[DeskHere | DeskElsewhere, list[Order]] = {}
        for path, order in orders.items():
            by_desk.setdefault(self._desk_of[path], []).append(order)
        for desk, own in by_desk.items():
            desk.ask("judge", (own,))
        return {path: judged for desk in by_desk for path, judged in desk.answer().items()}

    @cached_property
    def _desks(self) -> Sequence[DeskHere | DeskElsewhere]:
        """What those elsewhere built goes with their process, and is not taken down piece by piece, which would take as
        long as to judge it."""
        if self._count == 1:
            return [DeskHere(*self._given)]
        from mpdoctor.source_stage.elsewhere import DeskElsewhere

        return [DeskElsewhere(*self._given) for _ in range(self._count)]

    def _ready(self, busy: Sequence[Any]) -> list[Any]:
        if self._count == 1:
            return list(busy)
        from mpdoctor.source_stage.elsewhere import ready

        return ready(busy)


class DeskHere:
    """A desk of this process."""

    def __init__(self, *given: Any) -> None:
        self._desk = Desk(*given)

    def ask(self, what: str, arguments: tuple[Any, ...]) -> None:
        self._answer = getattr(self._desk, what)(*arguments)

    def answer(self) -> Any:
        return self._answer


def _portions(paths: Sequence[Path], size_of: Callable[[Path], int], count: int) -> Iterator[list[Path]]:
    """Of about the same size. Neighbours stay together: they import the same files."""
    most = sum(map(size_of, paths)) / count
    portion: list[Path] = []
    size = 0
    for path in paths:
        portion.append(path)
        size += size_of(path)
        if size >= most:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
