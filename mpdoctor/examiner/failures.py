"""An exception, as facts."""

from __future__ import annotations

import linecache
import os
import re
import traceback
from dataclasses import replace
from typing import Any

from mpdoctor.examiner.ownership import is_own
from mpdoctor.facts.failure import FailureFacts, Frame
from mpdoctor.facts.location import Location

_LONGEST_MESSAGE = 4000


def first_line(error: BaseException) -> str:
    """The exception in one short line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


def failure_from_exception(error: BaseException, during: str, **known: Any) -> FailureFacts:
    """`known` are further fields of FailureFacts: layer, saw_model, kind …"""
    frames = _frames(error)
    own = [frame for frame in frames if frame.own]
    told = FailureFacts(
        kind="raised",
        during=during,
        exception=type(error).__name__,
        message=_message(error),
        location=_location(error, own),
        frames=tuple(frames[-30:]),
    )
    return replace(told, **known)


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as broken:  # a user's exception whose __str__ raises
        text = f"(its text cannot be shown: {type(broken).__name__})"
    if len(text) <= _LONGEST_MESSAGE:
        return text
    # of a long one the ends say something: a graph's error comes last, after the traceback of its node
    return text[: _LONGEST_MESSAGE // 2] + "\n…\n" + text[-_LONGEST_MESSAGE // 2 :]


def _location(error: BaseException, own: list[Frame]) -> Location | None:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Location(os.path.abspath(error.filename), error.lineno)
    return Location(own[-1].path, own[-1].line) if own else None


def _frames(error: BaseException) -> list[Frame]:
    """Every frame, outermost first. Where autograph rewrote a function, or a graph was built earlier than it failed,
    the
    traceback does not show the user's line: autograph's own record, the message or the graph node does."""
    frames = []
    for summary in traceback.extract_tb(error.__traceback__):
        if "__autograph_generated_file" not in summary.filename:
            frames.append(_frame(summary.filename, summary.lineno or 0, summary.name))
    metadata = getattr(error, "ag_error_metadata", None)
    for original in reversed(getattr(metadata, "translated_stack", None) or ()):
        frame = _frame(original.filename, original.lineno, original.function_name)
        if frame.own:
            frames.append(frame)
    told = re.findall(r'File "([^"]+)", line (\d+), in (\w+)', _message(error))
    frames.extend(_frame(path, int(line), name) for path, line, name in told if is_own(path))
    return frames


def _frame(path: str, line: int, function: str) -> Frame:
    absolute = os.path.abspath(path) if not path.startswith("<") else path
    return Frame(absolute, line, function, linecache.getline(path, line).strip(), is_own(path))
