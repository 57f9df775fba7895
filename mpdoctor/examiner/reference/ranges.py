"""Ranges of a layer's outputs over all its calls in a step: largest, near the limit, flushed to 0."""

from __future__ import annotations

import numpy as np

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT, SMALLEST_NORMAL
from mpdoctor.facts.reference import LayerRange

SAMPLE = 4096  # elements of an output that are compared


def sample_of(values: np.ndarray) -> np.ndarray:
    """A sample of the values, at the same places for all arrays of one shape."""
    flat = values.reshape(-1)
    return flat[:: max(flat.size // SAMPLE, 1)].astype(np.float32)


class RangeOfLayer:
    """The range of one layer's outputs; `dtype` is that of its first output."""

    def __init__(self, path: str, dtype: str) -> None:
        self.path, self.dtype = path, dtype
        self._largest, self._smallest = 0.0, np.inf
        self._values = self._near = self._nonzero = self._subnormal = 0
        self._flushed = self._expected = 0
        self._difference = self._reference = 0.0  # squares, summed

    def note_output(self, values: np.ndarray) -> None:
        magnitudes = np.abs(values.astype(np.float32))
        finite = magnitudes[np.isfinite(magnitudes)]
        nonzero = finite[finite > 0]
        self._values += magnitudes.size
        self._near += int(np.count_nonzero(~(magnitudes <= 0.9 * FLOAT16_LIMIT)))
        self._nonzero += nonzero.size
        self._subnormal += int(np.count_nonzero(nonzero < SMALLEST_NORMAL))
        if nonzero.size:
            self._largest = max(self._largest, float(nonzero.max()))
            self._smallest = min(self._smallest, float(nonzero.min()))

    def note_gradient(self, flushed: int, expected: int) -> None:
        """Add a gradient that arrived at the layer's output: `flushed` elements are 0 here and not in float32,
        `expected` are not 0 in float32."""
        self._flushed += flushed
        self._expected += expected

    def note_difference(self, half: np.ndarray, single: np.ndarray) -> None:
        """Add a sample of one output in both precisions."""
        if half.shape == single.shape:
            self._difference += float(np.sum(np.square(half - single, dtype=np.float64)))
            self._reference += float(np.sum(np.square(single, dtype=np.float64)))

    @property
    def apart(self) -> float | None:
        known = 0 < self._reference < np.inf and np.isfinite(self._difference)
        return float(np.sqrt(self._difference / self._reference)) if known else None

    @property
    def flushed(self) -> float | None:
        return self._flushed / self._expected if self._expected else None

    def facts(self) -> LayerRange:
        return LayerRange(
            path=self.path,
            dtype=self.dtype,
            largest=self._largest,
            smallest=self._smallest if self._nonzero else 0.0,
            near_limit=self._near / max(self._values, 1),
            subnormal=self._subnormal / max(self._nonzero, 1),
            flushed=self.flushed,
            apart=self.apart,
        )
