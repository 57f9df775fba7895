"""The steps at which a loss had doubled, with how large the weights were then: a training whose weights run away."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Sequence

from mpdoctor.examiner.probe.weight_copies import largest_magnitude

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasVariable
    from mpdoctor.facts.training import StepFacts

RISE = 2.0  # times the loss before
MOST_RISES = 40


class LossRises:
    """The rises so far, as (step, loss, largest weight)."""

    def __init__(self) -> None:
        self.all: list[tuple[int, float, float]] = []

    def note(self, steps: Sequence[StepFacts], weights: list[KerasVariable]) -> None:
        """Note how large the weights are after a step whose loss has risen, or is the first that is not finite. Other
        steps cost nothing."""
        first, last = steps[0].loss, steps[-1].loss
        if first is None or last is None or not weights or len(self.all) >= MOST_RISES:
            return
        before = self.all[-1][1] if self.all else first
        left_at_once = not self.all and math.isfinite(first) and not math.isfinite(last)
        if left_at_once or 0 < before * RISE <= last < math.inf:
            self.all.append((len(steps) - 1, math.inf if left_at_once else last, largest_magnitude(weights)))
