"""Calls that took the last steps of an optimizer, kept to be run again: a step that differs from most is among them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Callable

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer

    Repeat = Callable[[], object]

CALLS = 16  # of lazily taken gradient penalties most are taken in every fourth to sixteenth step
BYTES = 1 << 28  # of all batches


class EarlierCalls:
    """The calls of each optimizer with their batches, the last one first."""

    def __init__(self) -> None:
        self._kept: dict[ObservedOptimizer, deque[tuple[Repeat, int]]] = {}

    def note(self, observed: ObservedOptimizer, repeat: Repeat | None, given: object) -> None:
        """Keep the call that just took a step of this optimizer, if it can be repeated; forget the oldest."""
        if repeat is None:
            return
        kept = self._kept.setdefault(observed, deque(maxlen=CALLS))
        kept.appendleft((repeat, _bytes_of(given)))
        while len(kept) > 1 and sum(size for _, size in kept) > BYTES:
            kept.pop()

    def of(self, observed: ObservedOptimizer) -> list[Repeat]:
        return [repeat for repeat, _ in self._kept.get(observed, ())]


def _bytes_of(batch: object) -> int:
    sizes = (
        int(np.prod(part.shape)) * part.dtype.size
        for part in tf.nest.flatten(batch)
        if isinstance(part, tf.Tensor) and part.shape.is_fully_defined()
    )
    return sum(sizes) + sum(part.nbytes for part in tf.nest.flatten(batch) if isinstance(part, np.ndarray))
