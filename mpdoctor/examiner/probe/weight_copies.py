"""Copies of weights: made, compared with what the weights are now, and put back for a while."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator

import tensorflow as tf

from mpdoctor.examiner.replay.variable_snapshot import put_back

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasVariable


def differs(variable: KerasVariable, old: tf.Tensor) -> bool:
    """Whether any number of the variable is another one than in the old copy. NaN differs from NaN."""
    return bool(tf.reduce_any(tf.not_equal(tf.identity(variable), old)))


def largest_magnitude(tensors: list[tf.Tensor]) -> float:
    """The largest magnitude in these tensors: inf where a number is not finite, 0 where there are none."""
    largest = max((float(tf.reduce_max(tf.abs(tf.cast(tf.identity(t), tf.float32)))) for t in tensors), default=0.0)
    return largest if math.isfinite(largest) else math.inf


def are_initialized(variables: list[KerasVariable]) -> bool:
    """Whether all variables have values. Those made in a graph have none, or an empty array, until it runs."""
    try:
        return all(tuple(tf.identity(variable).shape) == tuple(variable.shape) for variable in variables)
    except tf.errors.FailedPreconditionError:
        return False


def copies_of(variables: list[KerasVariable]) -> list[tuple[KerasVariable, tf.Tensor]]:
    """Each variable with a copy of its numbers."""
    return [(variable, tf.identity(variable)) for variable in variables]


@contextmanager
def put_back_for_now(copies: list[tuple[KerasVariable, tf.Tensor]]) -> Iterator[None]:
    """While this context is active, the variables hold what was copied."""
    now = copies_of([variable for variable, _ in copies])
    put_back(copies)
    try:
        yield
    finally:
        put_back(now)
