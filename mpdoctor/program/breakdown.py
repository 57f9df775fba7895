"""What may end the work on one file: an error of mpdoctor's own, and where it was raised; Python's limit of frames."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mpdoctor.facts.frozen import dataclass


@dataclass(frozen=True)
class Breakdown:
    """An error of mpdoctor's own, in its work on one file.

    path
        Of the file, as shown.
    where
        The line of mpdoctor that raised.
    error
        What it raised, in one line.
    """

    path: str
    where: str
    error: str


def breakdown_from_error(path: str, error: Exception) -> Breakdown:
    import traceback  # nothing of the kind is expected

    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "another process"
    return Breakdown(path, where, f"{type(error).__name__}: {error}")


@contextmanager
def room_for_frames(frames: int) -> Iterator[None]:
    """While this context is active, Python functions may call one another at least so deeply. 6,000 need less than half
    of a stack of 8 MiB."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, frames))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
