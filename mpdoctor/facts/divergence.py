"""The loss of a training in 16 bits and in float32, and whether the two differ."""

from __future__ import annotations

import math
from typing import Iterable, Sequence

from mpdoctor.facts.frozen import dataclass

PART_OF_CHANGE = 0.1  # of what the loss changes by in float32
PART_OF_LOSS = 0.02  # of the loss itself in float32
TIMES_THE_CONTROL = 5.0
TIMES_ROUNDED_THROUGHOUT = 20.0  # healthy trainings were seen at up to 4, sick ones from 100 on
ROUNDINGS = 8.0  # of the loss itself in the 16-bit dtype
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
FEWEST_STEPS = 12


@dataclass(frozen=True)
class TriedLayer:
    """The training with this layer in float32, and with those `beside` it, the others of its class. `heals`: whether
    its loss stays with float32's."""

    path: str
    losses: tuple[float, ...]
    heals: bool
    beside: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, *self.beside)


@dataclass(frozen=True)
class DivergenceFacts:
    """A training, run once more from its first weights on the same batches and random numbers.

    steps
        The steps that were compared, from 0 on. A step that the training in 16 bits skipped is skipped in all, and left
        out.
    half, single
        The loss at each of them, with the layers as they are and with all of them in float32.
    rounded
        In float32, from first weights that were rounded to 16 bits: how far rounding alone carries this loss. () where
        `half` is near `single`.
    rounded_throughout
        The same, with everything that layers hand on and hand back rounded as well; inside they compute in float32.
    layers
        The layers that were tried where the losses part: each alone, then the first one with all others of its class.
    not_measured
        Why there are no losses, a clause; "" where there are.
    """

    dtype: str = ""
    steps: tuple[int, ...] = ()
    half: tuple[float, ...] = ()
    single: tuple[float, ...] = ()
    rounded: tuple[float, ...] = ()
    layers: tuple[TriedLayer, ...] = ()
    seconds: float = 0.0
    not_measured: str = ""
    rounded_throughout: tuple[float, ...] = ()

    @property
    def last_third(self) -> slice:
        return slice(len(self.steps) - max(len(self.steps) // 3, 1), None)

    @property
    def change(self) -> float:
        """By how much the loss changes in float32, from its first value or from the mean of the first third."""
        end, third = _mean(self.single[self.last_third]), self.single[: max(len(self.single) // 3, 1)]
        return max(abs(self.single[0] - end), abs(_mean(third) - end))

    @property
    def distance(self) -> float:
        """Between 16 bits and float32, over the last third of the steps."""
        return self.distance_of(self.half)

    @property
    def judged_by(self) -> tuple[float, ...]:
        """The losses of the training in float32 that `half` is held against."""
        return self.rounded_throughout if self.parts_from_its_level and not self.parts_from_its_change else self.rounded

    @property
    def control(self) -> float:
        """Between the two trainings in float32, over the last third of the steps."""
        return self.distance_of(self.judged_by)

    def distance_of(self, losses: Sequence[float]) -> float:
        pairs = zip(losses[self.last_third], self.single[self.last_third])
        return _mean(abs(loss - single) for loss, single in pairs)

    @property
    def level(self) -> float:
        """The mean float32 loss over the last third of the steps; inf where a loss is not above 0, so that no share of
        it can be taken."""
        return _mean(self.single[self.last_third]) if min((*self.half, *self.single)) > 0 else math.inf

    @property
    def is_apart(self) -> bool:
        """Whether the loss in 16 bits differs from the one in float32 by a relevant share of the loss or of its change,
        and by more than rounding of the loss itself explains."""
        return self.parts_from_float32(self.half)

    def parts_from_float32(self, losses: Sequence[float]) -> bool:
        return self._exceeds_share_of_change(losses) or self._exceeds_share_of_loss(losses)

    @property
    def diverges(self) -> bool:
        return self.parts_from_its_change or self.parts_from_its_level

    @property
    def parts_from_its_change(self) -> bool:
        """Whether the difference is a relevant share of the loss's change, and more than rounded initial weights
        explain."""
        return self._exceeds_share_of_change(self.half) and self._is_beyond(self.rounded, TIMES_THE_CONTROL)

    @property
    def parts_from_its_level(self) -> bool:
        """Whether the difference is a relevant share of the loss, and more than rounding all layer outputs explains: a
        loss near 0 soon differs by a share of itself."""
        return self._exceeds_share_of_loss(self.half) and self._is_beyond(
            self.rounded_throughout, TIMES_ROUNDED_THROUGHOUT
        )

    def _exceeds_share_of_change(self, losses: Sequence[float]) -> bool:
        return self._is_compared(losses) and self._beyond_rounding(losses) > PART_OF_CHANGE * self.change

    def _exceeds_share_of_loss(self, losses: Sequence[float]) -> bool:
        return self._is_compared(losses) and self._beyond_rounding(losses) > PART_OF_LOSS * self.level

    def _is_compared(self, losses: Sequence[float]) -> bool:
        """Whether enough finite losses of both trainings stand side by side; a crafted file may lack the last ones."""
        reaches_end = bool(losses[self.last_third]) and bool(self.single[self.last_third])
        return len(self.steps) >= FEWEST_STEPS and reaches_end and all(map(math.isfinite, (*losses, *self.single)))

    def _beyond_rounding(self, losses: Sequence[float]) -> float:
        """The distance, where it is more than roundings of the loss itself explain; else 0."""
        magnitude = _mean(map(abs, self.single[self.last_third]))
        distance = self.distance_of(losses)
        return distance if distance > ROUNDINGS * EPSILON.get(self.dtype, math.inf) * magnitude else 0.0

    def _is_beyond(self, control: Sequence[float], times: float) -> bool:
        return bool(control[self.last_third]) and self.distance > times * self.distance_of(control)

    @property
    def healing(self) -> TriedLayer | None:
        return next((layer for layer in self.layers if layer.heals), None)


def _mean(losses: Iterable[float]) -> float:
    """The mean, without the module `statistics`: this module is imported at every start, and that one is slow to
    import."""
    values = list(losses)
    return math.fsum(values) / len(values)
