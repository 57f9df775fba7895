"""The loss of a training in 16 bits and in float32, and whether the two differ."""

from __future__ import annotations

import math
from typing import Iterable, Sequence

from mpdoctor.facts.frozen import dataclass

PART_OF_CHANGE = 0.1  # of what the loss changes by in float32
TIMES_THE_CONTROL = 5.0
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
        Those that were compared, from 0 on: what the training in 16 bits skipped is skipped in all, and left out.
    half, single
        The loss at each of them, with the layers as they are and with all of them in float32.
    rounded
        In float32, from first weights that were rounded to 16 bits: how far rounding alone carries this loss. () where
        `half` is near `single`.
    layers
        Tried where the loss parts: one by one, then the first of them with all others of its class.
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
    def control(self) -> float:
        """Between the two trainings in float32, over the last third of the steps."""
        return self.distance_of(self.rounded)

    def distance_of(self, losses: Sequence[float]) -> float:
        pairs = zip(losses[self.last_third], self.single[self.last_third])
        return _mean(abs(loss - single) for loss, single in pairs)

    @property
    def is_apart(self) -> bool:
        """By more than a part of the change, and than roundings of the loss itself explain."""
        return self.parts_from_float32(self.half)

    def parts_from_float32(self, losses: Sequence[float]) -> bool:
        if len(self.steps) < FEWEST_STEPS or not all(map(math.isfinite, (*losses, *self.single))):
            return False
        level = _mean(map(abs, self.single[self.last_third]))
        rounding = ROUNDINGS * EPSILON.get(self.dtype, math.inf) * level
        return self.distance_of(losses) > max(PART_OF_CHANGE * self.change, rounding)

    @property
    def diverges(self) -> bool:
        return bool(self.rounded) and self.is_apart and self.distance > TIMES_THE_CONTROL * self.control

    @property
    def healing(self) -> TriedLayer | None:
        return next((layer for layer in self.layers if layer.heals), None)


def _mean(losses: Iterable[float]) -> float:
    """Every start imports this module, and would wait for `statistics`."""
    values = list(losses)
    return math.fsum(values) / len(values)
