"""Workers in processes of their own. Apart, because most runs need none and `multiprocessing` is slow to import."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

import mpdoctor.source.project  # noqa: F401 - before the first fork, once for all workers
from mpdoctor.program.breakdown import Breakdown, breakdown_from_error
from mpdoctor.source_stage.judged_files import crash_from_breakdown
from mpdoctor.source_stage.process_count import FORKS, safe_path
from mpdoctor.source_stage.worker import Method, Worker, WorkerInput, broken_facts

_processes = multiprocessing.get_context("fork") if FORKS else multiprocessing.get_context("spawn")


class WorkerProcess:
    """A worker of a process of its own, which ends with this one. Should it have ended before (a system that is short
    of memory ends the largest), the answer is that we broke on each file."""

    def __init__(self, given: WorkerInput) -> None:
        self.line, far_end = multiprocessing.Pipe()
        self.has_ended = False
        self._shown = given.shown
        self._asked: tuple[str, tuple[Any, ...]] = "", ()
        self._process = _processes.Process(target=_serve, args=(far_end, self.line, given), daemon=True)
        with safe_path():
            self._process.start()
        far_end.close()

    def ask(self, method: Method, arguments: tuple[Any, ...]) -> None:
        self._asked = method, arguments
        with suppress(BrokenPipeError):  # then the answer says so
            self.line.send(self._asked)

    def answer(self) -> Any:
        try:
            error, answer = self.line.recv()
        except (EOFError, ConnectionError):
            self.has_ended = True
            return self._answer_of_broken(RuntimeError("the process that looked at it ended"))
        return answer if error is None else self._answer_of_broken(error)

    def end(self) -> None:
        """End the process; not by closing the line: workers that were forked later hold this end of it as well."""
        self._process.kill()
        self._process.join()
        self.line.close()

    def _answer_of_broken(self, error: Exception) -> dict[Path, Any]:
        """An answer that could not be given, file by file."""
        method, (asked,) = self._asked
        if method == "judge":
            return {task.path: [crash_from_breakdown(self._breakdown(task.path, error))] for task in asked}
        return {path: (broken_facts(self._breakdown(path, error)), False) for path in asked}

    def _breakdown(self, path: Path, error: Exception) -> Breakdown:
        return breakdown_from_error(self._shown.get(path, str(path)), error)


def ready(workers: Sequence[WorkerProcess]) -> list[WorkerProcess]:
    """Wait until a worker has an answer; all workers that have one."""
    lines = wait([worker.line for worker in workers])
    return [worker for worker in workers if worker.line in lines]


def _serve(line: Connection, other_end: Connection, given: WorkerInput) -> NoReturn:
    other_end.close()  # forked with it: a worker that held it would wait on when the first process was killed
    for number in (signal.SIGINT, signal.SIGTERM):  # forked, it would clean up what is the first process' own
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    worker = Worker(given)
    while True:
        try:
            method, arguments = line.recv()
        except EOFError:  # the other end has all that it wanted; to take down what was built would take a while
            os._exit(0)
        try:
            line.send((None, getattr(worker, method)(*arguments)))
        except Exception as error:  # the worker guards each file, so that it is the answer that cannot be sent
            line.send((RuntimeError(f"{type(error).__name__}: {error}"), None))
