"""Breakdown: an error of mpdoctor's own that ended the work on one file, and where it was raised."""

from __future__ import annotations

import traceback

from mpdoctor.facts.frozen import dataclass


@dataclass(frozen=True)
class Breakdown:
    """path
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
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "another process"
    return Breakdown(path, where, f"{type(error).__name__}: {error}")
