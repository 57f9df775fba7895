"""Snapshot and restore of every live tf.Variable, so that a training step can be repeated without side effects."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator, List, Tuple

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasVariable


OURS = "mpdoctor_"
Snapshot = List[Tuple[tf.Variable, tf.Tensor]]


@contextmanager
def variables_put_back() -> Iterator[None]:
    """Weights, statistics, seeds, metrics, counters, averages, gradients that a loop adds up by hand: put back to what
    they were, whoever holds them."""
    kept = snapshot_of_variables()
    try:
        yield
    finally:
        put_back(kept)


def snapshot_of_variables() -> Snapshot:
    """Of all that are alive. Copies lie in the host's memory, so that none of a GPU's is taken."""
    with tf.device("CPU:0"):
        return [(variable, tf.identity(variable)) for variable in _variables_alive()]


def put_back(kept: Snapshot) -> None:
    for variable, value in kept:
        variable.assign(value)


def _variables_alive() -> list[tf.Variable]:
    found = []
    for thing in gc.get_objects():
        # without asking the object: a lazy proxy's `__class__` may import something or raise
        if issubclass(type(thing), BaseResourceVariable) and _can_be_put_back(thing):
            found.append(thing)
    return found


def _can_be_put_back(variable: KerasVariable) -> bool:
    """Of the program's, holding numbers, and no mere node of a graph."""
    handle = getattr(variable, "_handle", None)
    if not hasattr(handle, "numpy") or OURS in variable.name:
        return False
    numbers = variable.dtype.is_floating or variable.dtype.is_integer or variable.dtype.is_bool
    return numbers and bool(tf.raw_ops.VarIsInitializedOp(resource=handle))
