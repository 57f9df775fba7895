"""The record of each training step, in variables on the device: one row per step, read by the host afterwards."""

from __future__ import annotations

import math
from typing import Callable, NamedTuple

import tensorflow as tf

# tf.Variable would ask the distribution strategy in force, and become one variable a replica
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from mpdoctor.examiner.keras.loss_tap import UNKNOWN, LossTap
from mpdoctor.examiner.keras.replicas import replica_number, replicas_in_step

CAPACITY = 1024
COLUMNS = 4  # number of the row, from 1 on; scale; loss; place of the first gradient that is not finite, or of these:
FINITE, ON_A_REPLICA = -1.0, -2.0  # the second: the replicas' own columns have the place


class Row(NamedTuple):
    """scale: NaN without loss scaling. finite: as the optimizer saw it. first_nonfinite: path of the variable whose
    gradient was not finite, or None. nonfinite_replicas: those whose own gradients were not finite; () for one."""

    scale: float
    finite: bool
    first_nonfinite: str | None
    loss: float
    nonfinite_replicas: tuple[int, ...] = ()


class Record:
    """The rows of one optimizer. Written in any graph (tf.function, XLA, eager), read in eager mode only.

    tap
        Where the loss of its steps is to be found; None where none was seen.
    guard
        Gives the operation that is to run in a graph before a row is written, None where there is none."""

    def __init__(self, replicas: int = 1) -> None:
        self.replicas = replicas
        self.tap: LossTap | None = None
        self.guard: Callable[[], tf.Operation] | None = None
        self._paths: list[str] = []
        self._read = 0
        columns = COLUMNS + (replicas if replicas > 1 else 0)
        with tf.init_scope():
            self._newest = ResourceVariable(tf.zeros([columns]), trainable=False, name="mpdoctor_newest")
            self._rows = ResourceVariable(tf.zeros([CAPACITY, columns]), trainable=False, name="mpdoctor_rows")
            # per replica: place of the first of its own gradients that is not finite, or -1
            self._own = ResourceVariable(tf.fill([replicas], -1.0), trainable=False, name="mpdoctor_own")

    def expect(self, gradients: list[tf.Tensor], paths: list[str]) -> None:
        """Name the variables of the gradients that come next, in the same order; under several replicas, note how
        this one's own gradients are, before they are summed over the replicas or dropped."""
        self._paths = [path for g, path in zip(gradients, paths) if g is not None]
        if self.replicas > 1 and self._paths and replicas_in_step() > 1:
            first = _first_nonfinite(gradients)[1]
            self._own.scatter_nd_update([[replica_number() or 0]], [first])

    def write(self, scale: tf.Tensor | float | None, gradients: list[tf.Tensor], by: int = 0) -> tf.Tensor:
        """Add a row and return, as a scalar bool tensor, whether all gradients (tensors, IndexedSlices or None) are
        finite. `scale`: None without loss scaling. Where several replicas train in step, only the one with the number
        `by` writes."""
        finite, first = _first_nonfinite(gradients)
        if replica_number() not in (by, None):
            return finite
        return self._write(UNKNOWN if scale is None else scale, finite, first)

    def write_judged(self, scale: tf.Tensor, finite: tf.Tensor, gradients: list[tf.Tensor]) -> None:
        """Add a row of a step of which the optimizer itself knows whether the gradients of all replicas are finite."""
        first = tf.constant(ON_A_REPLICA) if self.replicas > 1 else _first_nonfinite(gradients)[1]
        self._write(scale, finite, tf.where(finite, FINITE, first))

    def _write(self, scale: tf.Tensor | float, finite: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
        before = None if self.guard is None or tf.executing_eagerly() else self.guard()
        if before is None:
            return self._add(scale, finite, first)
        with tf.control_dependencies([before]):
            return self._add(scale, tf.identity(finite), tf.identity(first))

    def _add(self, scale: tf.Tensor | float, finite: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
        number = self._newest[0] + 1.0
        loss = tf.constant(UNKNOWN) if self.tap is None else self.tap.value()
        row = tf.stack([number, tf.cast(scale, tf.float32), loss, first])
        if self.replicas > 1:
            row = tf.concat([row, self._own.read_value()], 0)
        self._newest.assign(row)
        place = tf.math.floormod(tf.cast(number, tf.int32), CAPACITY)
        self._rows.scatter_nd_update([[place]], [row])
        return finite

    def unread(self) -> list[Row]:
        """The rows written since the last call, the oldest first. A single row is fetched without the others."""
        newest = self._newest.numpy()
        count = int(newest[0])
        if count <= self._read:
            return []
        if count == self._read + 1:
            fetched = [newest]
        else:
            rows = self._rows.numpy()
            fetched = [rows[i % CAPACITY] for i in range(max(self._read, count - CAPACITY) + 1, count + 1)]
        self._read = count
        return [self._row([float(number) for number in row]) for row in fetched]

    def _row(self, numbers: list[float]) -> Row:
        scale, loss = (math.nan if number <= UNKNOWN else number for number in numbers[1:3])
        first, *own = numbers[3:]
        nonfinite = tuple(replica for replica, place in enumerate(own) if place >= 0)
        seen = first if first >= 0 else next((own[replica] for replica in nonfinite), -1.0)
        return Row(scale, first == FINITE, None if seen < 0 else self._paths[int(seen)], loss, nonfinite)


def _first_nonfinite(gradients: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """Whether all are finite; and as a float32 the place of the first that is not, -1 where there is none. Where all
    are None, which the optimizer itself refuses, all are finite."""
    flags = [tf.reduce_all(tf.math.is_finite(values_of_gradient(g))) for g in gradients if g is not None]
    finite = tf.reduce_all(flags or [True])
    first = tf.argmin(tf.cast(flags or [True], tf.int32), output_type=tf.int32)
    return finite, tf.where(finite, -1.0, tf.cast(first, tf.float32))


def values_of_gradient(gradient: tf.Tensor) -> tf.Tensor:
    """The gradient as a tensor; of a sparse gradient the rows that it has."""
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
