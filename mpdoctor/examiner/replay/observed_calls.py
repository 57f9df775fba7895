"""A layer call in a step that is observed, and the facts of its tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.capture.layer_calls import dtype_name
from mpdoctor.examiner.capture.layer_hooks import LayerHooks
from mpdoctor.examiner.capture.open_call import OpenCall
from mpdoctor.examiner.process.user_code import class_location, own_location
from mpdoctor.examiner.replay.magnitudes import array_from_tensor
from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT, SMALLEST_NORMAL
from mpdoctor.facts.location import Location
from mpdoctor.facts.training import TensorFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer


class ObservedCall(OpenCall):
    """One call of one layer in an observed step. `number` counts the calls of this layer in the step, from 1 on;
    `called_at` is the user's line that was running then."""

    parent: ObservedCall | None

    def __init__(self, layer: KerasLayer, parent: ObservedCall | None, number: int) -> None:
        super().__init__(layer, parent)
        self.number = number
        self.called_at = own_location()
        self.output: TensorFacts | None = None  # the first that was not finite, else the last


def place_of_layer(layer_hooks: LayerHooks, layer: KerasLayer) -> Location | None:
    """The line that makes the layer, else that of its class; None where neither is the user's."""
    return layer_hooks.origins.made_at(layer) or class_location(type(layer))


def tensor_from_values(layer_hooks: LayerHooks, call: ObservedCall, tensor: tf.Tensor) -> TensorFacts:
    """The magnitudes of a layer's output, or of its gradient."""
    layer = call.layer
    values = np.abs(array_from_tensor(tensor).astype(np.float32))
    finite = values[np.isfinite(values)]
    nonzero = finite[finite > 0]
    return TensorFacts(
        layer=call.path,
        layer_class=type(layer).__name__,
        dtype=dtype_name(tensor),
        shape=tuple(int(size) for size in tensor.shape),
        largest=float(finite.max()) if finite.size else 0.0,
        smallest=float(nonzero.min()) if nonzero.size else 0.0,
        near_limit=_share(finite > 0.9 * FLOAT16_LIMIT),
        subnormal=_share(nonzero < SMALLEST_NORMAL),
        nonfinite=1.0 - finite.size / max(values.size, 1),
        location=place_of_layer(layer_hooks, layer),
        call=call.number,
    )


def _share(flags: tf.Tensor) -> float:
    return float(flags.mean()) if flags.size else 0.0
