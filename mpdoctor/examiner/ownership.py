"""Which files are the user's own, and which line of theirs is running."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from types import FrameType
from typing import Optional

from mpdoctor.facts.location import Location

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = tuple(
    os.path.realpath(path) + os.sep
    for path in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), _PACKAGE}
    if path
)


@functools.lru_cache(maxsize=None)
def is_own(filename: str) -> bool:
    """Whether a code object's file is the user's: neither installed, nor the standard library's, nor ours, nor made
    by autograph."""
    if filename.startswith("<") or "__autograph_generated_file" in filename:
        return False
    path = os.path.realpath(filename)
    parts = path.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        return False
    return not path.startswith(_LIBRARIES)


def own_location(frame: Optional[FrameType] = None) -> Optional[Location]:
    """The innermost line of the user's that is running now, None where there is none."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        if is_own(frame.f_code.co_filename):
            return Location(os.path.abspath(frame.f_code.co_filename), frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def class_location(cls: type) -> Optional[Location]:
    """Where a class of the user's stands, None for a library's."""
    module = sys.modules.get(cls.__module__)
    filename = getattr(module, "__file__", None)
    if not filename or not is_own(filename):
        return None
    import inspect

    try:
        _, line = inspect.getsourcelines(cls)
    except (OSError, TypeError):  # typed in at run time, or its file is gone
        return None
    return Location(os.path.abspath(filename), line)
