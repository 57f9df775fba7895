"""Desks in processes of their own. Apart, because most runs need none and `multiprocessing` is slow to import."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from mpdoctor.source_stage.desk import Desk


class DeskElsewhere:
    """A desk of a process of its own, which ends with this one."""

    def __init__(self, *given: Any) -> None:
        self._line, far_end = multiprocessing.Pipe()
        process = multiprocessing.Process(target=_serve, args=(far_end, *given), daemon=True)
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


def _serve(line: Connection, *given: Any) -> NoReturn:
    desk = Desk(*given)
    while True:
        try:
            what, arguments = line.recv()
        except EOFError:  # the other end has all that it wanted; to take down what was built would take a while
            os._exit(0)
        try:
            line.send((False, getattr(desk, what)(*arguments)))
        except Exception:
            line.send((True, traceback.format_exc()))
