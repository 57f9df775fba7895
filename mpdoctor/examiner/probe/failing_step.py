"""A step that failed, kept to be repeated from the state before it."""

from __future__ import annotations

import math
from typing import Callable

import tensorflow as tf

from mpdoctor.examiner.probe.weight_copies import largest_magnitude
from mpdoctor.examiner.replay.variable_snapshot import Snapshot


class FailingStep:
    """A step that failed, to be repeated from the state before it; and of the batches since, the one with the largest
    magnitudes."""

    def __init__(self, repeat: Callable[[], object], state: Snapshot) -> None:
        self.repeat, self.state = repeat, state
        self.repeat_largest: Callable[[], object] | None = None
        self._largest = 0.0

    def note_batch(self, given: object, repeat: Callable[[], object] | None) -> None:
        """Keep what repeats a later step, where its batch holds larger numbers than those before it."""
        numbers = [
            tensor for tensor in tf.nest.flatten(given) if isinstance(tensor, tf.Tensor) and tensor.dtype.is_floating
        ]
        largest = largest_magnitude([tensor for tensor in numbers if hasattr(tensor, "numpy")])
        if repeat is not None and self._largest < largest < math.inf:
            self.repeat_largest, self._largest = repeat, largest
