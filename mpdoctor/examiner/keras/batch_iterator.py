"""Batches handed to a train function of Keras 2 one by one, through an iterator of the type that it was traced with."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class Feed:
    """`iterator_of(batch)` is an iterator over this batch alone, of the same type as the user's: with the exact shape
    of a last, smaller batch in its type Keras would trace its step once more, and a second graph draws other dropout
    masks than the first.

    Making an iterator costs far more than a step of a small model, so one is made, over variables that hold the batch
    at hand."""

    def __init__(self) -> None:
        self._specification: Any = None
        self._holders: list[Any] = []
        self._iterator: Any = None

    def iterator_of(self, batch: Any, specification: Any) -> Any:
        """`specification`: the type of the user's iterator."""
        parts = tf.nest.flatten(batch)
        if not all(isinstance(tensor, tf.Tensor) for tensor in parts) or not _is_plain(specification):
            return _typed(iter(tf.data.Dataset.from_tensors(batch)), specification)
        if self._specification is None or specification != self._specification:
            self._begin(batch, specification)
        for holder, tensor in zip(self._holders, parts):
            holder.assign(tensor)
        return self._iterator

    def _begin(self, batch: Any, specification: Any) -> None:
        self._specification = specification
        with tf.init_scope(), tf.device("CPU:0"):
            self._holders = [
                tf.Variable(tensor, shape=spec.shape, trainable=False, name="mpdoctor_batch")
                for tensor, spec in zip(tf.nest.flatten(batch), tf.nest.flatten(specification._element_spec))
            ]
            held = tf.data.Dataset.range(2**62).map(
                lambda _: tf.nest.pack_sequence_as(batch, [holder.read_value() for holder in self._holders])
            )
            options = tf.data.Options()
            options.experimental_optimization.apply_default_optimizations = False  # none may read ahead
        self._iterator = _typed(iter(held.with_options(options)), specification)


def _is_plain(specification: Any) -> bool:
    return type(specification).__name__ == "IteratorSpec"


def _typed(iterator: Any, specification: Any) -> Any:
    own = iterator._type_spec
    if not isinstance(specification, type(own)):  # of a distribution strategy
        return iterator
    typed = specification._from_components(own._to_components(iterator))
    typed.owner = iterator  # which frees the batch when it is gone
    return typed
