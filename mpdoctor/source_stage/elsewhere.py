"""Desks in processes of their own. Apart, because most runs need none and `multiprocessing` is slow to import."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from mpdoctor.source_stage.desk import Desk


class DeskElsewhere:
    """A desk of a process of its own, which ends with this one."""

    def __init__(self, *given: Any) -> None:
        self.line, far_end = multiprocessing.Pipe()
        process = multiprocessing.Process(target=_serve, args=(far_end, *given), daemon=True)
        process.start()
        far_end.close()

    def ask(self, what: str, arguments: tuple[Any, ...]) -> None:
        self.line.send((what, arguments))

    def answer(self) -> Any:
        """Raises RuntimeError with the other process' traceback where that broke."""
        broke, answer = self.line.recv()
        if broke:
            raise RuntimeError(answer)
        return answer


def ready(desks: Sequence[DeskElsewhere]) -> list[DeskElsewhere]:
    """Those that have an answer, as soon as one has."""
    lines = wait([desk.line for desk in desks])
    return [desk for desk in desks if desk.line in lines]


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
