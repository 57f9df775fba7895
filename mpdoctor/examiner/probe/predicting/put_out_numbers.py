"""Counts the inf and NaN values in a prediction, and finds the first sample with one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

import numpy as np

from mpdoctor.examiner.capture.layer_calls import flat_tensors

if TYPE_CHECKING:
    import tensorflow as tf


def count_nonfinite(result: object) -> tuple[int, int, int]:
    """(floating-point numbers, how many of them are inf or NaN, how many NaN)."""
    numbers = nonfinite = nan = 0
    for values in _arrays(result):
        finite = int(np.isfinite(values).sum())
        numbers += values.size
        nonfinite += values.size - finite
        nan += int(np.isnan(values).sum()) if finite < values.size else 0
    return numbers, nonfinite, nan


def first_bad_row(result: object) -> int:
    """The index of the first sample in a result of predict() that is not finite; 0 where all are."""
    rows = []
    for values in _arrays(result):
        if values.ndim and values.size:
            bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=-1)
            rows += [int(bad.argmax())] if bad.any() else []
    return min(rows, default=0)


def _arrays(result: object) -> Iterator[np.ndarray]:
    if isinstance(result, float):
        yield np.asarray(result)
    for tensor in _leaves(result):
        dtype = str(getattr(tensor.dtype, "name", tensor.dtype))
        if "float" in dtype and (isinstance(tensor, (np.ndarray, np.generic)) or hasattr(tensor, "_id")):
            values = np.asarray(tensor)
            yield values.astype(np.float32) if dtype == "bfloat16" else values


def _leaves(result: object) -> list[tf.Tensor]:
    """Arrays and tensors in it, and plain numbers, which evaluate() gives in lists and dicts."""
    if isinstance(result, dict):
        return [leaf for value in result.values() for leaf in _leaves(value)]
    if isinstance(result, (list, tuple)):
        return [leaf for value in result for leaf in _leaves(value)]
    if isinstance(result, float) and not hasattr(result, "dtype"):
        return [np.asarray(result)]
    return flat_tensors(result)
