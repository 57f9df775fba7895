"""Whether an error came behind a custom loop that had run to its end."""

from __future__ import annotations

import ast
import linecache
import sys
import traceback
from types import CodeType
from typing import TYPE_CHECKING, Callable, Tuple

from mpdoctor.examiner.process.user_code import is_own

if TYPE_CHECKING:
    from types import FrameType

Running = Tuple[CodeType, int]  # what a frame runs, and its line
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def lines_running() -> list[Running]:
    """The lines of the user's that are running in this thread, the outermost first."""
    running: list[Running] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_own(frame.f_code.co_filename):
            running.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return running[::-1]


def came_behind_loop(in_loop: list[Running], error: BaseException) -> bool:
    """Whether an error was raised in a later statement than the one that ran the loop. `in_loop`: the lines that ran
    in a step of it."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    raised = [running for running in frames if is_own(running[0].co_filename)]
    for (code, line), (other_code, other) in zip(in_loop, raised):
        if code is not other_code:
            return False
        if line != other:
            return other > line and not _in_one(code.co_filename, line, other, _is_whole)
        if _in_one(code.co_filename, line, line, _is_loop):
            return False  # a later turn of it
    return False


def _in_one(filename: str, first: int, last: int, is_meant: Callable[[ast.AST], bool]) -> bool:
    """Whether both lines stand in one such part of the file; True where that is not known."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return True
    meant = (node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)) and is_meant(node))
    return not tree.body or any(node.lineno <= first and last <= (node.end_lineno or 0) for node in meant)


def _is_loop(node: ast.AST) -> bool:
    return isinstance(node, _LOOPS)


def _is_whole(node: ast.AST) -> bool:
    """Whether it is a loop, or a statement that holds no others."""
    return _is_loop(node) or (isinstance(node, ast.stmt) and not hasattr(node, "body"))
