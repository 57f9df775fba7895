"""Stops a training loop that runs inside one tf.function, from within its graph: the host cannot stop it."""

from __future__ import annotations

import math
import time

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

MARK = "mpdoctor has seen enough steps"
MOST_OPTIMIZERS = 16


class InGraphStop:
    """An assertion in front of each step of a graph: every optimizer was stepped often enough, or the time is up.

    XLA compiles assertions away, and knows no clock: there a loop runs to its end."""

    def __init__(self) -> None:
        with tf.init_scope(), tf.device("CPU:0"):
            self._done = ResourceVariable([math.inf] * MOST_OPTIMIZERS, trainable=False, name="mpdoctor_done")
            self._deadline = ResourceVariable(math.inf, dtype=tf.float64, trainable=False, name="mpdoctor_deadline")

    def join(self, number: int) -> None:
        """From now on the steps of this optimizer count, too."""
        if number < MOST_OPTIMIZERS:
            with tf.init_scope():
                self._done.scatter_nd_update([[number]], [0.0])

    def allow(self, seconds: float) -> None:
        """Stop so many seconds from now."""
        with tf.init_scope():
            self._deadline.assign(time.time() + seconds)

    def begin_again(self) -> None:
        """Count the steps of every optimizer anew, from 0."""
        with tf.init_scope():
            self._done.assign(tf.where(tf.math.is_inf(self._done), self._done, tf.zeros_like(self._done)))

    def check(self, number: int, wanted: int) -> tf.Operation:
        """The operation that raises in the place of a further step of this optimizer."""
        more = tf.reduce_min(self._done.read_value()) < wanted
        in_time = tf.timestamp() < self._deadline.read_value()
        checked = tf.debugging.Assert(tf.logical_and(more, in_time), [MARK])
        with tf.control_dependencies([checked]):
            if number >= MOST_OPTIMIZERS:
                return tf.no_op()
            counted = self._done.scatter_nd_add([[number]], [1.0])
        return tf.group(checked) if counted is None else counted


def is_stop(error: BaseException) -> bool:
    """Whether this is the end of a loop that was stopped here."""
    return isinstance(error, tf.errors.InvalidArgumentError) and MARK in str(error)
