"""Adopted wrappers: a live LossScaleOptimizer gets a class whose scale mpdoctor's state machine moves, and that records
its steps. The object, its variables and its inner optimizer stay: whatever the program refers to is the same thing."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from mpdoctor.examiner.keras.step_record import Record
from mpdoctor.loss_scale import LossScale, ScaleState


def adopted_wrapper_class(base: type, record: Record, machine: LossScale) -> type:
    """A LossScaleOptimizer whose scale is moved by `machine` and whose steps are recorded.

    Keras' own `apply` stays: it knows how to agree among replicas; only what it calls is replaced."""
    from keras.src import ops

    class Adopted(base):
        def check_finite(self, grads: list[tf.Tensor]) -> Any:
            return record.write(self.dynamic_scale, grads)

        def _stateful_handle_finite_grads(self, grads: list[tf.Tensor], trainable_variables: Any) -> None:
            scale = self.dynamic_scale
            overwrites = getattr(self, "_overwrite_variable_with_gradient", lambda variable: False)
            unscaled = [
                g if g is None or overwrites(v) else ops.divide(g, scale)
                for g, v in zip(grads, trainable_variables or self._trainable_variables)
            ]
            self.inner_optimizer.apply(unscaled, trainable_variables=trainable_variables)
            self._advance(finite=True)

        def _stateful_handle_non_finite_grads(self) -> None:
            self._advance(finite=False)

        def _advance(self, finite: bool) -> None:
            before = ScaleState(tf.convert_to_tensor(self.dynamic_scale), tf.convert_to_tensor(self.step_counter))
            after = advanced(machine, before, finite)
            self.dynamic_scale.assign(after.scale)
            self.step_counter.assign(after.counter)

    return named_like(base, Adopted)


def adopted_state_class(base: type, record: Record, machine: LossScale) -> type:
    """A `_DynamicLossScaleState` whose scale is moved by `machine` and whose steps are recorded. Agreement
    among replicas is Keras': gradients are all-reduced before they come here, so the first replica speaks for all."""

    class Adopted(base):
        def update(self, grads: list[tf.Tensor]) -> Any:
            scale = tf.convert_to_tensor(self.current_loss_scale)
            finite = _finite(record, scale, tf.nest.flatten(grads))
            after = advanced(machine, ScaleState(scale, tf.convert_to_tensor(self.counter)), finite)
            moved = tf.group(self.current_loss_scale.assign(after.scale), self.counter.assign(after.counter))
            return moved, finite

    return named_like(base, Adopted)


def advanced(machine: LossScale, before: ScaleState, finite: Any) -> ScaleState:
    """The state of a loss scale after a step, in tensors. What it multiplies is no work of the training code."""
    return machine.step(before, finite, where).state


def _finite(record: Record, scale: tf.Tensor, grads: list[tf.Tensor]) -> Any:
    if not (tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context()):
        return record.write(scale, grads)
    strategy = tf.distribute.get_strategy()
    per_replica = strategy.extended.call_for_each_replica(record.write, args=(scale, grads))
    return strategy.experimental_local_results(per_replica)[0]


def where(condition: bool | tf.Tensor, yes: tf.Tensor, no: tf.Tensor) -> tf.Tensor:
    """`where` of the state machine, for tensors: a condition known while tracing costs no node."""
    if isinstance(condition, bool):
        return yes if condition else no
    return tf.where(condition, yes, no)


def named_like(base: type, cls: type) -> type:
    """The user's code may print, compare or serialise the class by name."""
    cls.__name__, cls.__qualname__, cls.__module__ = base.__name__, base.__qualname__, base.__module__
    return cls


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
