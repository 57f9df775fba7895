"""The pairs of loss scales at which one step is replayed, and the replays."""

from __future__ import annotations

import math
from typing import Callable

from mpdoctor.examiner.replay.two_scales import GradientCatcher, Passage

APART = 2.0**6
# Tried where the scale of the training itself is not known, or overflows.
PAIRS = ((2.0**4, 2.0**10), (2.0**-2, 2.0**4), (2.0**-8, 2.0**-2))


def pairs_from_scale(scale: float | None) -> tuple[tuple[float, float], ...]:
    """The training's own scale and one 2^6 below it come first: what is clipped is clipped there as in the run."""
    usable = scale is not None and APART <= scale < math.inf
    return ((scale / APART, scale), *PAIRS) if usable and scale is not None else PAIRS


def dependence_from_replays(
    set_scale: Callable[[float], None],
    replay: Callable[[], None],
    catcher: GradientCatcher,
    pairs: tuple[tuple[float, float], ...],
) -> tuple[float, float, Passage, Passage] | None:
    """Replay one step at two scales. None where every pair overflows or nothing arrives."""
    for low, high in pairs:
        passages = []
        for scale in (low, high):
            set_scale(scale)
            replay()
            passages.append(catcher.take())
        arrived = [passage.arrived for passage in passages]
        if all(arrived) and all(math.isfinite(n) for side in arrived for n in side.values()):
            return low, high, passages[0], passages[1]
    return None
