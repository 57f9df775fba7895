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
    parted = _where_they_part(in_loop, error)
    if parted is None:
        return False
    depth, other = parted
    code, line = in_loop[depth]
    if other < line or _in_one(code.co_filename, line, other, _is_whole):
        return False
    return not any(_in_one(code.co_filename, line, line, _is_loop) for code, line in in_loop[:depth])  # a later turn


def came_between_steps(in_loop: list[Running], error: BaseException) -> bool:
    """Whether an error was raised in a loop around the innermost one that takes the steps, and not in that one."""
    parted = _where_they_part(in_loop, error)
    if parted is None:
        return False
    depth, other = parted
    code, line = in_loop[depth]
    if any(_in_one(code.co_filename, line, line, _is_loop) for code, line in in_loop[depth + 1 :]):
        return True
    loops_around = _parts_around(code.co_filename, line, line, _is_loop)
    if not loops_around:
        return False
    return not loops_around[-1][0] <= other <= loops_around[-1][1]


def _where_they_part(in_loop: list[Running], error: BaseException) -> tuple[int, int] | None:
    """Where the lines of the error leave those of a step: at which depth, and the error's line there. None where they
    share none or all."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    raised = [running for running in frames if is_own(running[0].co_filename)]
    for depth, ((code, line), (other_code, other)) in enumerate(zip(in_loop, raised)):
        if code is not other_code:
            return None
        if line != other:
            return depth, other
    return None


def _in_one(filename: str, first: int, last: int, is_meant: Callable[[ast.AST], bool]) -> bool:
    """Whether both lines stand in one such part of the file; True where that is not known."""
    parts = _parts_around(filename, first, last, is_meant)
    return parts is None or bool(parts)


def _parts_around(
    filename: str, first: int, last: int, is_meant: Callable[[ast.AST], bool]
) -> list[tuple[int, int]] | None:
    """The first and last lines of such parts of the file that hold both lines, the outermost first; None where the
    file cannot be read."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return None
    if not tree.body:
        return None
    meant = (node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)) and is_meant(node))
    spans = [(node.lineno, node.end_lineno or 0) for node in meant]
    return sorted((start, end) for start, end in spans if start <= first and last <= end)


def _is_loop(node: ast.AST) -> bool:
    return isinstance(node, _LOOPS)


def _is_whole(node: ast.AST) -> bool:
    """Whether it is a loop, or a statement that holds no others."""
    return _is_loop(node) or (isinstance(node, ast.stmt) and not hasattr(node, "body"))
