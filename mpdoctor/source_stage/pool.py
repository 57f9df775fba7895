"""All workers of a run: one in this process, or several in processes of their own."""

from __future__ import annotations

import gc
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.source_stage.judged_files import Judged
from mpdoctor.source_stage.worker import Method, Task, Worker, WorkerInput

if TYPE_CHECKING:
    from mpdoctor.source_stage.worker_process import WorkerProcess

PORTIONS = 8  # for each worker: who is done early takes another one


class WorkerPool:
    """All workers of a run, started when there is work."""

    def __init__(self, count: int, given: WorkerInput) -> None:
        self._count, self._given = count, given
        self._worker_of: dict[Path, LocalWorker | WorkerProcess] = {}

    def have_looked_at(self, path: Path) -> bool:
        """Whether one of them has looked at this file."""
        return path in self._worker_of

    def all_do(
        self, method: Method, paths: Sequence[Path], size_of: Callable[[Path], int]
    ) -> Iterator[tuple[Path, tuple[SourceFacts, bool]]]:
        """The answers to "read", "walk" or "walk_with_imports", as they come: the facts of each file without its
        events, and whether these show mixed precision."""
        if not paths:
            return
        portions = list(_portions(paths, size_of, 1 if self._count == 1 else self._count * PORTIONS))
        waiting = _stretches(portions, self._count)
        free: dict[int, LocalWorker | WorkerProcess] = dict(enumerate(self._workers))
        busy: dict[LocalWorker | WorkerProcess, tuple[int, list[Path]]] = {}
        while any(waiting) or busy:
            while any(waiting) and free:
                place, worker = free.popitem()
                portion = waiting[place].popleft() if waiting[place] else max(waiting, key=len).pop()
                busy[worker] = place, portion
                worker.ask(method, (portion,))
            for worker in self._ready([*busy]):
                (place, portion), answer = busy.pop(worker), worker.answer()
                if worker.has_ended:
                    worker = self._in_place_of(worker)
                    if len(portion) > 1:  # which of them was it?
                        waiting[place].extend([path] for path in portion)
                        answer = {}
                else:
                    self._worker_of |= dict.fromkeys(answer, worker)
                yield from answer.items()
                free[place] = worker

    def judge(self, tasks: Mapping[Path, Task]) -> Iterator[tuple[Path, Judged]]:
        """Judge each file in the worker that has walked it."""
        waiting: dict[LocalWorker | WorkerProcess, list[Task]] = {}
        for path, task in tasks.items():
            waiting.setdefault(self._worker_of[path], []).append(task)
        most = {worker: -(-len(own) // PORTIONS) for worker, own in waiting.items()}
        free = list(waiting)
        busy: list[LocalWorker | WorkerProcess] = []
        while free or busy:
            for worker in free:
                worker.ask("judge", (waiting[worker][: most[worker]],))
                del waiting[worker][: most[worker]]
            busy += free
            answering = self._ready(busy)
            for worker in answering:
                yield from worker.answer().items()
            busy = [worker for worker in busy if worker not in answering]
            free = [worker for worker in answering if waiting[worker]]

    @property
    def is_at_work(self) -> bool:
        """Whether a worker has looked at anything, and holds what it made of it."""
        return bool(self._worker_of)

    def start_anew(self) -> None:
        """Give back all that the workers hold. Whatever is asked about next, they look at it again."""
        for worker in self._workers:
            worker.end()
        self._worker_of.clear()
        del self._workers

    def _in_place_of(self, ended: LocalWorker | WorkerProcess) -> LocalWorker | WorkerProcess:
        from mpdoctor.source_stage.worker_process import WorkerProcess

        self._workers.remove(ended)
        self._workers.append(WorkerProcess(self._given))
        return self._workers[-1]

    @cached_property
    def _workers(self) -> list[LocalWorker | WorkerProcess]:
        """What those elsewhere built goes with their process, and is not taken down piece by piece, which would take as
        long as to judge it."""
        if self._count == 1:
            return [LocalWorker(self._given)]
        from mpdoctor.source_stage.worker_process import WorkerProcess

        return [WorkerProcess(self._given) for _ in range(self._count)]

    def _ready(self, busy: Sequence[Any]) -> list[Any]:
        if self._count == 1:
            return list(busy)
        from mpdoctor.source_stage.worker_process import ready

        return ready(busy)


class LocalWorker:
    """A worker of this process."""

    has_ended = False

    def __init__(self, given: WorkerInput) -> None:
        self._worker = Worker(given)

    def ask(self, method: Method, arguments: tuple[Any, ...]) -> None:
        self._answer = getattr(self._worker, method)(*arguments)

    def answer(self) -> Any:
        return self._answer

    def end(self) -> None:
        del self._worker, self._answer
        gc.collect()


def _stretches(portions: Sequence[list[Path]], count: int) -> list[deque[list[Path]]]:
    """What each worker begins with: neighbours, so that fewer of the files that they import are walked by several
    workers. Who is done takes from the end of another's."""
    ends = [number * len(portions) // count for number in range(count + 1)]
    return [deque(portions[start:end]) for start, end in itertools.pairwise(ends)]


def _portions(paths: Sequence[Path], size_of: Callable[[Path], int], count: int) -> Iterator[list[Path]]:
    """Split the paths into portions of about the same size. Neighbours stay together, since they import the same
    files."""
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
