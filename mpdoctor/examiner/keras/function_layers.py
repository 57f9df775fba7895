"""The layers that Keras 2 makes of functions which are called with its symbolic tensors (TFOpLambda and its kin).

What such a function is given besides its inputs is kept in the model as it was when the model was made: a tensor that a
layer put out then stays 16-bit when that layer, and all others, compute in float32.
"""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

from mpdoctor.facts.half_dtypes import HALF

NAMES = (
    "TFOpLambda",
    "SlicingOpLambda",
    "TFClassMethod",
    "TFSlicingOpDispatcher",
    "InstanceMethod",
    "InstanceProperty",
)


def with_float32_constants(layer: Any) -> Callable[[], None]:
    """From now on the function gets float32 in the place of 16 bits wherever it is also given float32; TensorFlow would
    refuse both together. Returns a function that ends it."""
    function = getattr(layer, "function", None)
    if type(layer).__name__ not in NAMES or not callable(function):
        return lambda: None

    def called(*args: Any, **kwargs: Any) -> Any:
        given = tf.nest.flatten((args, kwargs))
        if not any(_dtype(value) == "float32" for value in given):
            return function(*args, **kwargs)
        args, kwargs = tf.nest.map_structure(_in_float32, (args, kwargs))
        return function(*args, **kwargs)

    layer.function = called

    def end() -> None:
        layer.function = function

    return end


def _in_float32(value: Any) -> Any:
    return tf.cast(value, tf.float32) if _dtype(value) in HALF else value


def _dtype(value: Any) -> str:
    return str(value.dtype.name) if isinstance(value, tf.Tensor) else ""
