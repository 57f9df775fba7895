"""Values of eager tensors: are they finite, how large are they, what would an operation give in float32?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, execute

FINITE, INFINITE, NAN = range(3)
HALF = (tf.float16, tf.float16.as_datatype_enum)


def is_eager(tensor: tf.Tensor) -> bool:
    """Whether it is a plain tensor with values: neither symbolic nor ragged, sparse, a variable."""
    return isinstance(tensor, tf.Tensor) and hasattr(tensor, "numpy") and hasattr(tensor, "_id")


def is_floating(tensor: tf.Tensor) -> bool:
    """Whether it is a floating-point tensor with values, not a symbolic one."""
    return is_eager(tensor) and tensor.dtype.is_floating


def is_number(tensor: tf.Tensor) -> bool:
    return is_eager(tensor) and (tensor.dtype.is_floating or tensor.dtype.is_integer)


def state_of(tensor: tf.Tensor) -> int:
    if not is_floating(tensor):
        return FINITE
    values = array_from_tensor(tensor)
    if np.isfinite(values).all():
        return FINITE
    return NAN if np.isnan(values).any() else INFINITE


def array_from_tensor(tensor: tf.Tensor) -> np.ndarray:
    """The tensor as a NumPy array; bfloat16, which NumPy lacks, as float32."""
    values = np.asarray(tensor.numpy())
    return values.astype(np.float32) if tensor.dtype == tf.bfloat16 else values


def largest_in_float32(
    name: str, inputs: list[tf.Tensor], attrs: tuple[object, ...], outputs: list[tf.Tensor]
) -> float | None:
    """The largest magnitude that the same operation puts out when float16 is float32 everywhere."""
    tensors = [*inputs, *outputs]
    if all(t.dtype != tf.float16 for t in tensors) or any(t.dtype in (tf.resource, tf.variant) for t in tensors):
        return None
    wider = [tf.cast(t, tf.float32) if t.dtype == tf.float16 else t for t in inputs]
    try:
        results = execute.execute(
            tf.compat.as_bytes(name), len(outputs), wider, _wider_attributes(attrs), context.context()
        )
    except (tf.errors.OpError, TypeError, ValueError):  # no float32 kernel: nothing is known
        return None
    arrays = [np.abs(array_from_tensor(t)) for t in results if is_floating(t)]
    largest = max((float(values.max()) for values in arrays if values.size), default=0.0)
    return None if math.isnan(largest) else largest


def _wider_attributes(attrs: tuple[object, ...]) -> tuple[object, ...]:
    """Names and values in turn: T, DstT, SrcT, dtype and the like hold dtypes, or lists of them."""
    wider = list(attrs)
    for place in range(1, len(wider), 2):
        name, value = str(wider[place - 1]), wider[place]
        if "T" not in name and name != "dtype":
            continue
        if isinstance(value, (list, tuple)):
            wider[place] = [_wider(item) for item in value]
        else:
            wider[place] = _wider(value)
    return tuple(wider)


def _wider(dtype: object) -> object:
    if not isinstance(dtype, (int, tf.DType)) or dtype not in HALF:
        return dtype
    return tf.float32.as_datatype_enum if isinstance(dtype, int) else tf.float32


def range_of_finite(arrays: list[np.ndarray[Any, Any]]) -> tuple[float, float, bool]:
    """(smallest, largest, whether there is a 0) of what is finite in them, in magnitude; 0 is not the smallest."""
    finite = [np.abs(values[np.isfinite(values)]) for values in arrays]
    nonzero = [values[values > 0] for values in finite if (values > 0).any()]
    return (
        min((float(values.min()) for values in nonzero), default=0.0),
        max((float(values.max()) for values in nonzero), default=0.0),
        any((values == 0).any() for values in finite),
    )


def is_masked(arrays: list[np.ndarray[Any, Any]]) -> bool:
    """Whether what is not finite in them is -inf throughout, and there is some."""
    bad = [values[~np.isfinite(values)] for values in arrays]
    return any(values.size for values in bad) and all((values == -math.inf).all() for values in bad)
