"""Finds the loss scales at which the gradients of some batches fit into float16: powers of 2, by running them."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mpdoctor.examiner.reference.comparison import cosine, is_finite, lowest_power, relevant_paths, variables_compared
from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.reference import FLUSHED_TOO_MUCH, ScaleRoom

if TYPE_CHECKING:
    from mpdoctor.examiner.reference.twin_steps import StepRunner, Twins

MOST_REPLAYS = 8  # of one batch, to find where it overflows
LOWEST, HIGHEST = -24, 60  # powers that are tried
SPARE = 2  # powers between an end of the room and where something gets lost: what one batch holds, the next may not


class OutOfTime(Exception):
    """The time for the search is spent."""


class Outcome(NamedTuple):
    """What one batch gives at one scale: the variables whose gradient is not finite, those with too many elements
    flushed to 0, and the cosine between the whole gradient and float32's."""

    overflowing: tuple[str, ...]
    flushed: tuple[str, ...]
    arrived: bool
    cosine: float | None

    @property
    def is_finite(self) -> bool:
        return self.arrived and not self.overflowing


class ScaleSearch:
    """The search over these batches, in 16 bits and in float32; `until` is the time at which it ends."""

    def __init__(self, runner: StepRunner, batches: list[Twins], until: float) -> None:
        self._runner, self._until = runner, until
        self._batches = sorted(batches, key=lambda twins: -twins.largest)  # the tightest first
        self._known: dict[tuple[int, int], Outcome] = {}  # by (batch, power)

    def room(self) -> ScaleRoom | None:
        """The loss scales that fit; None where no gradient can overflow. Raises OutOfTime, and what running a step
        raises."""
        if self._batches[0].largest <= 0:
            return None
        highest = self._highest()
        if highest is None:
            return ScaleRoom(None, None, len(self._known), self._overflowing(LOWEST))
        lowest = self._lowest(highest)
        if lowest is None:
            overflowing, flushed = self._overflowing(highest + 1), self._flushed_from(highest - SPARE)
            return ScaleRoom(None, 2.0**highest, len(self._known), overflowing, flushed)
        spared = min(lowest + SPARE, highest - SPARE)
        return self._with_cosine(ScaleRoom(2.0**spared, 2.0**highest, flushes_below=2.0**lowest))

    def _with_cosine(self, room: ScaleRoom) -> ScaleRoom:
        """The direction of the gradients in the middle of it, as far as there is time."""
        cosine = None
        if room.middle is not None:
            power = round(math.log2(room.middle))
            with suppress(OutOfTime):
                cosines = [self._outcome(batch, power).cosine for batch in range(len(self._batches))]
                cosine = min((known for known in cosines if known is not None), default=None)
        return replace(room, replays=len(self._known), cosine=cosine)

    # --- where something overflows --------------------------------------------------------------------------------
    def _highest(self) -> int | None:
        power = self._highest_of_tightest()
        for batch in range(1, len(self._batches)):
            while power is not None and not self._is_finite(batch, power):
                power = power - 1 if power > LOWEST else None
        return power

    def _highest_of_tightest(self) -> int | None:
        """The highest power that the first batch allows. The search starts where the largest gradient in float32 would
        just fit; gradients between layers may be larger."""
        fits = math.floor(math.log2(FLOAT16_LIMIT / self._batches[0].largest))
        power, leap = min(max(fits, LOWEST), HIGHEST), 1
        holds = fails = None
        while len(self._known) < MOST_REPLAYS:
            if self._is_finite(0, power):
                holds = power
            else:
                fails = power
            if holds == HIGHEST or fails == LOWEST or (None not in (holds, fails) and fails == (holds or 0) + 1):
                break
            if holds is None or fails is None:
                power = power + leap if fails is None else power - leap
                power, leap = min(max(power, LOWEST), HIGHEST), leap * 2
            else:
                power = (holds + fails) // 2
        return holds

    def _is_finite(self, batch: int, power: int) -> bool:
        return self._outcome(batch, power).is_finite

    def _overflowing(self, power: int) -> tuple[str, ...]:
        overflowing = (path for batch in range(len(self._batches)) for path in self._outcome(batch, power).overflowing)
        return tuple(dict.fromkeys(overflowing))

    # --- where too much is flushed --------------------------------------------------------------------------------
    def _lowest(self, highest: int) -> int | None:
        """The smallest power at which, and at the two above, enough is kept: at one alone a sum of float16 may come out
        right by luck. From where the weights' gradients would keep enough; those between layers may be smaller."""
        loses: int | None = None
        last = highest - SPARE
        power, leap = min(self._kept_by_weights(), last), 1
        while self._flushed_from(power):
            if power == last:
                return None
            loses, power, leap = power, min(power + leap, last), leap * 2
        while loses is not None and power - loses > 1:
            middle = (power + loses) // 2
            loses, power = (middle, power) if self._flushed_from(middle) else (loses, middle)
        return power

    def _kept_by_weights(self) -> int:
        """The smallest power at which float16 holds enough of each relevant weight's gradient, if it loses nothing on
        the way there."""
        smallest = (
            lowest_power(twins.single.gradients[path], FLUSHED_TOO_MUCH)
            for twins in self._batches
            for path in relevant_paths(twins.single.gradients)
            if path in twins.weights
        )
        return max(max(smallest, default=LOWEST), LOWEST)

    def _flushed_from(self, power: int) -> tuple[str, ...]:
        """The variables that lose elements at this power or the next ones above; () for none."""
        outcomes = (self._flushed(tried) for tried in range(power, power + SPARE + 1))
        return next((flushed for flushed in outcomes if flushed), ())

    def _flushed(self, power: int) -> tuple[str, ...]:
        """The variables that lose elements in the first batch that loses any; () for none."""
        outcomes = (self._outcome(batch, power).flushed for batch in range(len(self._batches)))
        return next((flushed for flushed in outcomes if flushed), ())

    # --- a run ----------------------------------------------------------------------------------------------------
    def _outcome(self, batch: int, power: int) -> Outcome:
        known = self._known.get((batch, power))
        if known is None:
            if time.monotonic() > self._until:
                raise OutOfTime
            twins = self._batches[batch]
            gradients = self._runner.run(twins.kept, scale=2.0**power).gradients
            known = self._known[batch, power] = Outcome(
                tuple(path for path in gradients if not is_finite({path: gradients[path]})),
                tuple(v.path for v in variables_compared(gradients, twins.single.gradients) if v.underflows),
                bool(gradients),
                cosine(gradients, twins.single.gradients),
            )
        return known
