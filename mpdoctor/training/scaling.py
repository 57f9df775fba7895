"""The parts common to every Keras: the state machine on the device, and the check of all replicas' gradients."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import tensorflow as tf

from mpdoctor.loss_scale import FLOAT32_MAX, LossScale, ScaleState
from mpdoctor.training.refusals import checked_numbers

FLOOR = 1.0
CAP = FLOAT32_MAX
HYSTERESIS = 1
GROWTH_STEPS = 2000


class Bounds:
    """floor, cap and hysteresis of one optimizer: what no Keras has. Raises ValueError where no scale fits between."""

    def __init__(self, initial_scale: float, floor: float, cap: float, hysteresis: int) -> None:
        checked_numbers(initial_scale, floor, cap, hysteresis)
        self.floor, self.cap, self.hysteresis = float(floor), float(cap), int(hysteresis)
        self._lowest = min(self.floor, float(initial_scale))

    def from_start(self, initial_scale: float) -> Bounds:
        """The same bounds for another initial scale."""
        return Bounds(initial_scale, self.floor, self.cap, self.hysteresis)

    def machine(self, initial_scale: float, growth_steps: int | None) -> LossScale:
        return LossScale(
            float(initial_scale), growth_steps, floor=self._lowest, cap=self.cap, hysteresis=self.hysteresis
        )

    def within(self, scale: tf.Tensor) -> tf.Tensor:
        """A restored scale may lie outside: that of Keras 3's own falls to 0 and grows to inf."""
        return tf.clip_by_value(scale, self._lowest, self.cap)

    def in_config(self) -> dict[str, Any]:
        """What a configuration says of them: nothing where all are as by default, and Keras' own wrapper takes it."""
        given = {"floor": self.floor, "cap": self.cap, "hysteresis": self.hysteresis}
        default = {"floor": FLOOR, "cap": CAP, "hysteresis": HYSTERESIS}
        return {name: value for name, value in given.items() if value != default[name]}


def number_of_python(scale: Any) -> int | float:
    """A Python number from one of NumPy or a tensor, as a JSON configuration needs it."""
    return scale if isinstance(scale, (int, float)) else float(scale)


def where(condition: Any, yes: Any, no: Any) -> Any:
    """`where` of the state machine, for tensors: a condition known while tracing costs no operation."""
    if isinstance(condition, bool):
        return yes if condition else no
    return tf.where(condition, yes, no)


def after_step(machine: LossScale, state: ScaleState, finite: tf.Tensor) -> ScaleState:
    """The state after a step: tensors in a graph; eagerly plain numbers, since each operation costs there."""
    if tf.executing_eagerly():
        numbers = ScaleState(float(state.scale), int(state.counter), int(state.bad))
        return machine.step(numbers, bool(finite)).state
    return machine.step(state, finite, where).state


def all_finite(gradients: Sequence[Any]) -> tf.Tensor:
    """Whether tensors, IndexedSlices or None are finite, as a scalar bool."""
    values = [g.values if isinstance(g, tf.IndexedSlices) else g for g in gradients if g is not None]
    finite = [tf.reduce_all(tf.math.is_finite(value)) for value in values]
    return tf.reduce_all(tf.stack(finite), axis=0) if finite else tf.constant(True)


def in_every_replica(check: Callable[..., tf.Tensor], *args: Any) -> tf.Tensor:
    """Whether `check(*args)` is true in all replicas, of all workers; in whatever context it is asked."""
    if not tf.distribute.has_strategy() or tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return check(*args)

    def failed(*args: Any) -> tf.Tensor:
        return tf.where(check(*args), 0.0, 1.0)  # truths cannot be summed over replicas

    total = tf.distribute.ReduceOp.SUM
    if tf.distribute.in_cross_replica_context():
        strategy = tf.distribute.get_strategy()
        counts = strategy.extended.call_for_each_replica(failed, args=args)
        return tf.equal(strategy.reduce(total, counts, axis=None), 0.0)
    return tf.equal(tf.distribute.get_replica_context().all_reduce(total, failed(*args)), 0.0)


def unscaled_among(gradients: list[Any], given: Sequence[Any]) -> bool:
    """Whether one of these gradients was given to `get_unscaled_gradients` before: then these are still the scaled
    ones."""
    before = {id(reference()) for reference in given if reference() is not None}
    return any(id(gradient) in before for gradient in gradients if gradient is not None)
