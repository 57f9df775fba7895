"""The least and the largest loss scale between two readings, of which each says only where the scale then was."""

from __future__ import annotations

import math

MOST_HALVINGS = 277  # from the largest float32 to the least


def extremes(before: float, after: float, halvings: int | None) -> tuple[float, float]:
    """(least, largest). `halvings`: how often the scale was halved in between, None where that is not known. Of no more
    steps than the growth interval: there a scale that has grown did so before it was halved."""
    low, high = min(before, after), max(before, after)
    if halvings and halvings <= MOST_HALVINGS and 0 < after < math.inf and 0 < before < math.inf:
        high = max(high, math.ldexp(after, halvings))
    return low, high
