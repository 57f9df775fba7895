"""All desks of a run: one here, or several in processes of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.source_stage.worker import Desk, Judged, Order

if TYPE_CHECKING:
    from mpdoctor.source_stage.worker_process import DeskElsewhere

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
        busy: dict[DeskHere | DeskElsewhere, list[Path]] = {}
        while waiting or busy:
            while waiting and free:
                desk, portion = free.pop(0), waiting.popleft()
                busy[desk] = portion
                desk.ask(what, (portion,))
            for desk in self._ready([*busy]):
                portion, answer = busy.pop(desk), desk.answer()
                if desk.has_ended:
                    desk = self._in_place_of(desk)
                    if len(portion) > 1:  # which of them was it?
                        waiting.extend([path] for path in portion)
                        answer = {}
                else:
                    self._desk_of |= dict.fromkeys(answer, desk)
                yield from answer.items()
                free.append(desk)

    def judge(self, orders: Mapping[Path, Order]) -> dict[Path, Judged]:
        """Each file where it was looked at."""
        by_desk: dict[DeskHere | DeskElsewhere, list[Order]] = {}
        for path, order in orders.items():
            by_desk.setdefault(self._desk_of[path], []).append(order)
        for desk, own in by_desk.items():
            desk.ask("judge", (own,))
        return {path: judged for desk in by_desk for path, judged in desk.answer().items()}

    def _in_place_of(self, ended: DeskHere | DeskElsewhere) -> DeskHere | DeskElsewhere:
        from mpdoctor.source_stage.worker_process import DeskElsewhere

        self._desks.remove(ended)
        self._desks.append(DeskElsewhere(*self._given))
        return self._desks[-1]

    @cached_property
    def _desks(self) -> list[DeskHere | DeskElsewhere]:
        """What those elsewhere built goes with their process, and is not taken down piece by piece, which would take as
        long as to judge it."""
        if self._count == 1:
            return [DeskHere(*self._given)]
        from mpdoctor.source_stage.worker_process import DeskElsewhere

        return [DeskElsewhere(*self._given) for _ in range(self._count)]

    def _ready(self, busy: Sequence[Any]) -> list[Any]:
        if self._count == 1:
            return list(busy)
        from mpdoctor.source_stage.worker_process import ready

        return ready(busy)


class DeskHere:
    """A desk of this process."""

    has_ended = False

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
