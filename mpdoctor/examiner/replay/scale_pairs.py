"""The pairs of loss scales at which one step is replayed, and the replays."""

from __future__ import annotations

import math
from typing import Callable, Tuple

from mpdoctor.examiner.replay.two_scales import GradientCatcher, Passage, exponents
from mpdoctor.facts.training import SOME

APART = 2.0**6
# Tried where the scale of the training itself is not known, or overflows.
PAIRS = ((2.0**4, 2.0**10), (2.0**-2, 2.0**4), (2.0**-8, 2.0**-2))
NEARLY_ALL = 0.95  # the exponent of gradients that nothing divides by the scale is 1
LARGEST_SCALE = 2.0**16

Replays = Tuple[float, float, Passage, Passage]  # a low and a high scale, and one step at each


def pairs_from_scale(scale: float | None) -> tuple[tuple[float, float], ...]:
    """The training's own scale and one 2^6 below it come first: what is clipped is clipped there as in the run."""
    usable = scale is not None and APART <= scale < math.inf
    return ((scale / APART, scale), *PAIRS) if usable and scale is not None else PAIRS


def dependence_from_replays(
    set_scale: Callable[[float], None],
    replay: Callable[[], None],
    catcher: GradientCatcher,
    pairs: tuple[tuple[float, float], ...],
) -> Replays | None:
    """Replay one step at two scales. None where every pair overflows or nothing arrives.

    Gradients that grow less than the scale may be equal where none of them becomes 0 in float16: the higher scales at
    which they are count then."""
    measured = next(filter(None, (_replayed(set_scale, replay, catcher, *pair) for pair in pairs)), None)
    higher = measured
    while higher is not None and SOME < _exponent(higher) < NEARLY_ALL and higher[1] < LARGEST_SCALE:
        higher = _replayed(set_scale, replay, catcher, higher[1], higher[1] * APART)
    return higher if higher is not None and abs(_exponent(higher)) <= SOME else measured


def _replayed(
    set_scale: Callable[[float], None], replay: Callable[[], None], catcher: GradientCatcher, low: float, high: float
) -> Replays | None:
    """The step at these two scales, None where it overflows or nothing arrives."""
    passages = []
    for scale in (low, high):
        set_scale(scale)
        replay()
        passages.append(catcher.take())
    arrived = [passage.arrived for passage in passages]
    if all(arrived) and all(math.isfinite(n) for side in arrived for n in side.values()):
        return low, high, passages[0], passages[1]
    return None


def _exponent(replays: Replays) -> float:
    """The median exponent of the variables, 0 where no gradient arrives that is not 0."""
    low, high, at_low, at_high = replays
    ordered = sorted(exponent for _, exponent in exponents(low, high, at_low.arrived, at_high.arrived))
    return ordered[len(ordered) // 2] if ordered else 0.0
