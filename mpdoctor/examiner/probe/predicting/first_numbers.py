"""The first numbers of a model's weights, by which a later look sees that the program has changed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from mpdoctor.examiner.probe.weight_copies import are_initialized

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasModel, KerasVariable

MOST = 64  # of each weight


class FirstNumbers:
    """The first numbers of each trainable weight, as they are now; none where these have no values yet. Statistics,
    which a call itself may change, are not trainable."""

    def __init__(self, model: KerasModel) -> None:
        weights = list(model.trainable_variables)
        self._numbers = [(each, _begin_of(each)) for each in weights] if are_initialized(weights) else []

    def changed(self) -> bool:
        """Whether a weight has others by now."""
        return any(_begin_of(weight) != numbers for weight, numbers in self._numbers)


def _begin_of(weight: KerasVariable) -> bytes:
    begin: bytes = tf.reshape(tf.identity(weight), [-1])[:MOST].numpy().tobytes()
    return begin
