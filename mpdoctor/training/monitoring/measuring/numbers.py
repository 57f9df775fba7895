"""What is measured of a tensor, in the graph: four numbers, and how many elements have each exponent, whatever it
holds."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from mpdoctor.facts.half_dtypes import SMALLEST_NORMAL

# Of a float32, without the sign: 8 bits of exponent and 23 of mantissa.
EXPONENTS, MANTISSA_BITS, BIAS = 256, 23, 127


class Part(NamedTuple):
    """A layer's output or a variable's gradient; `dtype`: in which it was computed."""

    name: str
    dtype: str
    tensor: Any


def numbers_of(tensors: list[Any]) -> tf.Tensor:
    """[the largest of the finite ones, share that is inf or NaN, share that is 0, share between 0 and float16's
    smallest normal number], of all elements of these tensors together."""
    count = tf.cast(tf.add_n([tf.size(tensor, tf.int64) for tensor in tensors]), tf.float32)
    largest = [tf.reduce_max(tf.concat([[0.0], _finite(tensor)], 0)) for tensor in tensors]
    sums = [tf.add_n([_count(is_counted(tensor)) for tensor in tensors]) for is_counted in (_bad, _zero, _subnormal)]
    shares = [tf.math.divide_no_nan(total, count) for total in sums]
    return tf.stack([tf.reduce_max(tf.stack(largest)), *shares])


def exponents_of(tensors: list[Any]) -> tf.Tensor:
    """How many elements of these tensors, as float32, have each biased exponent, int32: 1 is that of 2^-126, 254 that
    of 2^127; 0 has what is smaller, and 255 what is inf or NaN."""
    return tf.add_n([_counts(tensor) for tensor in tensors])


def _counts(tensor: Any) -> Any:
    bits = tf.bitcast(_magnitude(tf.reshape(tensor, [-1])), tf.int32)
    exponents = tf.bitwise.right_shift(bits, tf.constant(MANTISSA_BITS))
    return tf.raw_ops.Bincount(arr=exponents, size=EXPONENTS, weights=tf.constant([], tf.int32))


def dense(value: Any) -> Any:
    """The tensor itself; for a sparse gradient the rows that it has."""
    return value.values if isinstance(value, tf.IndexedSlices) else value


def _magnitude(tensor: Any) -> Any:
    return tf.abs(tf.cast(tensor, tf.float32))


def _finite(tensor: Any) -> Any:
    flat = tf.reshape(_magnitude(tensor), [-1])
    return tf.where(tf.math.is_finite(flat), flat, tf.zeros_like(flat))


def _count(mask: Any) -> Any:
    return tf.reduce_sum(tf.cast(mask, tf.float32))


def _bad(tensor: Any) -> Any:
    return tf.logical_not(tf.math.is_finite(tensor))


def _zero(tensor: Any) -> Any:
    return tf.equal(tensor, tf.zeros_like(tensor))


def _subnormal(tensor: Any) -> Any:
    size = _magnitude(tensor)
    return tf.logical_and(size > 0, size < SMALLEST_NORMAL)
