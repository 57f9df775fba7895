"""Gradient accumulation of Keras 3, around a loss scale: a group of steps is applied or left out as a whole."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

from mpdoctor.training.scaling import all_finite, in_every_replica


class Keras3Accumulation:
    """The part of a LossScaleOptimizer that is needed where the optimizer inside sums gradients up over several
    steps."""

    inner_optimizer: Any
    _trainable_variables: Any
    _unscaled: Callable[..., Any]

    def _accumulate(
        self, finite: tf.Tensor, apply: Callable[[], None], grads: list[Any], trainable_variables: Any, scale: Any
    ) -> None:
        """A group of steps is applied when all of it was finite, and left out when not: a NaN in the sums stands for a
        step of the group that was not, so that sums that are saved amid a group know it, too."""
        inner = self.inner_optimizer
        steps = inner.gradient_accumulation_steps
        variables = trainable_variables or self._trainable_variables
        sums = [inner._accumulated_gradients[inner._get_variable_index(v)].value for v in variables]
        last = tf.equal((tf.convert_to_tensor(inner._iterations) + 1) % steps, 0)

        def group_is_finite() -> tf.Tensor:
            return in_every_replica(self._sum_is_finite, grads, sums, trainable_variables, scale)

        def leave_out_step() -> None:
            for total in sums:
                total.assign(tf.fill(total.shape, tf.constant(float("nan"), total.dtype)))
            inner._iterations.assign_add(1)

        def leave_out_group() -> None:
            for total in sums:
                total.assign(tf.zeros(total.shape, total.dtype))
            inner._iterations.assign_sub(steps - 1)

        applies = tf.cond(tf.logical_and(finite, last), group_is_finite, lambda: tf.identity(finite))
        tf.cond(applies, apply, lambda: tf.cond(last, leave_out_group, leave_out_step))

    def _sum_is_finite(self, grads: list[Any], sums: list[Any], trainable_variables: Any, scale: Any) -> tf.Tensor:
        unscaled = self._unscaled(grads, trainable_variables, scale)
        return all_finite([tf.convert_to_tensor(g) + s for g, s in zip(unscaled, sums) if g is not None])
