"""What was measured of one step, on the host: for the run file, and which of it is left out where there is much."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.training.monitoring.measuring.numbers import BIAS, EXPONENTS
from mpdoctor.training.monitoring.run_file import number_in_json

MOST_PARTS = 150  # of each kind, in a line: of a larger model those nearest to float16's ends
LONGEST_NAME = 100
BYTES_BEFORE_COARSER = 1 << 17


class MeasuredPart(NamedTuple):
    """`largest` is that of the finite elements; the shares are of all, and `subnormal` of what float16 keeps with fewer
    digits than its eleven, 0 left out. A gradient is taken as it was scaled. `exponents`: (power of 2, how many
    elements lie between it and the next one), without gaps; none where they were not counted, or there are none."""

    name: str
    dtype: str
    largest: float
    not_finite: float
    zero: float
    subnormal: float
    exponents: tuple[tuple[int, int], ...] = ()

    def in_line(self) -> list[Any]:
        numbers = [number_in_json(_short(number)) for number in self[2:6]]
        return [self.name[-LONGEST_NAME:], self.dtype, *numbers]

    def strain(self) -> tuple[float, float]:
        """How near it is to the end of its dtype that it may leave, for a choice among many."""
        return self.not_finite, max(self.largest / FLOAT16_LIMIT, self.subnormal)


class Measured(NamedTuple):
    step: int
    layers: list[MeasuredPart]
    gradients: list[MeasuredPart]

    def in_line(self) -> dict[str, Any]:
        """For the run file; the layers in the order in which they return."""
        kinds = {"layers": self.layers, "gradients": self.gradients}
        return {"event": "measured", **{name: [p.in_line() for p in most_of(parts)] for name, parts in kinds.items()}}


def most_of(parts: list[MeasuredPart]) -> list[MeasuredPart]:
    if len(parts) <= MOST_PARTS:
        return parts
    least = sorted((part.strain() for part in parts), reverse=True)[MOST_PARTS - 1]
    return [part for part in parts if part.strain() >= least][:MOST_PARTS]


def exponents_from(counts: list[int]) -> tuple[tuple[int, int], ...]:
    """(exponent, count) from counts by biased exponent (see `exponents_of`): those of normal numbers, from the first
    that occurs to the last."""
    there = [at for at, count in enumerate(counts[: EXPONENTS - 1]) if at and count]
    return tuple((at - BIAS, counts[at]) for at in range(there[0], there[-1] + 1)) if there else ()


def _short(number: float) -> float:
    return float(f"{number:.3g}") if math.isfinite(number) else number


class Thinned:
    """Decides which measured steps are written: fewer the more bytes were written, then every second, every fourth,
    …"""

    def __init__(self) -> None:
        self._seen, self._bytes, self._each = 0, 0, 1

    def takes(self, length: int) -> bool:
        taken = self._seen % self._each == 0
        self._seen += 1
        if taken:
            self._bytes += length
        if self._bytes > BYTES_BEFORE_COARSER:
            self._bytes, self._each = 0, 2 * self._each
        return taken
