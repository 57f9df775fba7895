"""What each training step leaves behind, in variables on the device: one row a step, read by the host afterwards."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorflow as tf

# tf.Variable would ask the distribution strategy in force, and become one variable a replica
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

CAPACITY = 1024


class Row(NamedTuple):
    """scale: NaN without loss scaling. first_nonfinite: path of the variable whose gradient was not finite, or None."""

    scale: float
    first_nonfinite: str | None
    loss: float


class LossTap:
    """The newest loss that the training code handed to its optimizer or its tape, before any scaling."""

    def __init__(self) -> None:
        self._variable: Any = None

    def put(self, loss: Any) -> None:
        """Remember a loss of any shape and dtype; a vector counts with its mean."""
        loss = tf.stop_gradient(tf.convert_to_tensor(loss))
        if not loss.dtype.is_floating:
            return
        with tf.init_scope():
            if self._variable is None:
                self._variable = ResourceVariable(math.nan, dtype=tf.float32, trainable=False, name="mpdoctor_loss")
        self._variable.assign(tf.reduce_mean(tf.cast(loss, tf.float32)))

    def value(self) -> Any:
        """The loss as a scalar float32 tensor; NaN where none was seen."""
        return tf.constant(math.nan) if self._variable is None else self._variable.read_value()

    @property
    def seen(self) -> bool:
        return self._variable is not None


class Record:
    """The rows of one optimizer. Written in any graph (tf.function, XLA, eager), read in eager mode only."""

    def __init__(self, tap: LossTap) -> None:
        self._tap = tap
        self._paths: list[str] = []
        self._read = 0
        with tf.init_scope():
            self._rows = ResourceVariable(tf.zeros([CAPACITY, 3]), trainable=False, name="mpdoctor_rows")
            self._count = ResourceVariable(0, dtype=tf.int64, trainable=False, name="mpdoctor_count")

    def expect(self, gradients: list[Any], paths: list[str]) -> None:
        """Name the variables of the gradients that come next, in the same order."""
        self._paths = [path for g, path in zip(gradients, paths) if g is not None]

    def write(self, scale: Any, gradients: Any) -> Any:
        """Add a row and return, as a scalar bool tensor, whether all gradients (tensors, IndexedSlices or None) are
        finite."""
        flags = tf.stack([tf.reduce_all(tf.math.is_finite(_values(g))) for g in gradients if g is not None])
        finite = tf.reduce_all(flags)
        if not _is_first_replica():
            return finite
        first = tf.where(finite, -1, tf.argmin(tf.cast(flags, tf.int32), output_type=tf.int32))
        row = tf.stack([tf.cast(scale, tf.float32), tf.cast(first, tf.float32), self._tap.value()])
        place = tf.math.floormod(self._count, CAPACITY)
        self._rows.assign(tf.tensor_scatter_nd_update(self._rows, [[place]], [row]))
        self._count.assign_add(1)
        return finite

    def unread(self) -> list[Row]:
        """The rows written since the last call, the oldest first."""
        count = int(self._count.numpy())
        if count == self._read:
            return []
        rows, first = self._rows.numpy(), max(self._read, count - CAPACITY)
        self._read = count
        return [self._row(rows[i % CAPACITY]) for i in range(first, count)]

    def _row(self, numbers: Any) -> Row:
        scale, first, loss = (float(number) for number in numbers)
        return Row(scale, None if first < 0 else self._paths[int(first)], loss)


def _values(gradient: Any) -> Any:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _is_first_replica() -> bool:
    """Where several replicas train in step, the first one writes."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return True
    replica = tf.get_static_value(tf.convert_to_tensor(context.replica_id_in_sync_group))
    return replica is None or int(replica) == 0
