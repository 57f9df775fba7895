"""Calls of the user's tf.functions, made again eagerly with what the traced function was given."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import tensorflow as tf


def repeated_call(function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    """Call a tf.function that runs eagerly now. Arrays become tensors, as where it is traced: `tape.watch(batch)` and
    `batch.shape.rank` need them."""
    args, kwargs = _with_tensors((args, kwargs))
    return function(*args, **kwargs)


def _with_tensors(given: Any) -> Any:
    if not any(isinstance(part, (np.ndarray, np.generic)) for part in tf.nest.flatten(given)):
        return given
    return tf.nest.map_structure(_tensor_from_array, given)


def _tensor_from_array(part: object) -> object:
    """The tensor of an array; anything else, and an array of objects, as it is."""
    if not isinstance(part, (np.ndarray, np.generic)):
        return part
    try:
        return tf.convert_to_tensor(part)
    except (TypeError, ValueError):
        return part
