"""Keras 3 with the TensorFlow backend: its own LossScaleOptimizer with our state machine."""

from __future__ import annotations

import weakref
from typing import Any

import keras
import tensorflow as tf

from mpdoctor.facts.half_dtypes import DEFAULT_SCALE
from mpdoctor.loss_scale import LossScale, ScaleState, keras3
from mpdoctor.training.delegation import Delegated, delegations_of_base
from mpdoctor.training.keras3_accumulation import Keras3Accumulation
from mpdoctor.training.refusals import (
    checked_fixed,
    checked_growth_steps,
    refuse_bypassed_override,
    refuse_wrapper_inside,
)
from mpdoctor.training.scaling import (
    CAP,
    FLOOR,
    GROWTH_STEPS,
    HYSTERESIS,
    Bounds,
    after_step,
    all_finite,
    in_every_replica,
    number_of_python,
    unscaled_among,
)

KerasOwn: Any = object  # for type checkers: Keras' own class, which stands behind these methods
# The wrapper's own: it makes, saves and loads variables beside those of the inner optimizer.
KEPT = (
    "add_optimizer_variables", "add_variable", "add_variable_from_reference", "assign", "assign_add", "assign_sub",
    "get_config", "stateless_apply",
)  # fmt: skip


class Keras3Scaling(Keras3Accumulation, KerasOwn):
    """Stands before Keras 3's LossScaleOptimizer among the bases of a class.

    step_counter, dynamic_scale
        Keras' own variables, under its own names: what it has saved is loaded, and the other way round.
    bad_steps
        Skipped steps in a row, int64; a variable where the hysteresis is above 1.
    """

    keras_wrapper: Any
    built: bool
    own_attributes = frozenset(
        (
            "inner_optimizer",
            "initial_scale",
            "dynamic_growth_steps",
            "step_counter",
            "dynamic_scale",
            "bad_steps",
            "built",
            "name",
        )
    )

    @classmethod
    def delegations(cls, wrapper: type, base: type) -> dict[str, Delegated]:
        return delegations_of_base(wrapper, base, KEPT + tuple(vars(cls)))

    def __init__(
        self,
        inner_optimizer: Any,
        initial_scale: float | None = None,
        dynamic_growth_steps: int | None = None,
        name: str | None = None,
        *,
        dynamic: bool = True,
        floor: float = FLOOR,
        cap: float = CAP,
        hysteresis: int = HYSTERESIS,
        **kwargs: Any,
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise RuntimeError(
                f"mpdoctor.training needs Keras' TensorFlow backend, and this is {keras.backend.backend()}: take "
                "keras.optimizers.LossScaleOptimizer."
            )
        refuse_wrapper_inside(inner_optimizer, self.keras_wrapper)
        refuse_bypassed_override(inner_optimizer, keras.optimizers.Optimizer, "apply_gradients", "apply")
        checked_fixed(dynamic, initial_scale, dynamic_growth_steps)
        initial_scale = DEFAULT_SCALE if initial_scale is None else initial_scale
        growth_steps = checked_growth_steps(dynamic_growth_steps)
        growth_steps = GROWTH_STEPS if dynamic and growth_steps is None else growth_steps
        bounds = Bounds(initial_scale, floor, cap, hysteresis)
        initial_scale = number_of_python(initial_scale)
        super().__init__(
            inner_optimizer, initial_scale=initial_scale, dynamic_growth_steps=growth_steps, name=name, **kwargs
        )
        own = self.__dict__
        own.update(_bounds=bounds, _is_dynamic=dynamic)
        own.update(_apply_unscales=True, _given_scaled=(), _kept_weights=None)
        for attribute in [
            own_name for own_name in own if not own_name.startswith("_") and own_name not in self.own_attributes
        ]:
            if hasattr(inner_optimizer, attribute):
                del own[attribute]  # Keras' base class sets them to None, in front of the inner optimizer's

    # --- the scale --------------------------------------------------------------------------------------------
    @property
    def dynamic(self) -> bool:
        return bool(self._is_dynamic)

    @property
    def _machine(self) -> LossScale:
        """The state machine with the current growth interval: Keras' own wrapper allows it to change at any time."""
        steps = self.dynamic_growth_steps
        interval = None if steps is None else keras3(self.initial_scale, steps).growth_interval
        return self._bounds.machine(self.initial_scale, interval)

    @property
    def loss_scale(self) -> tf.Tensor:
        """The current loss scale, a float32 scalar."""
        if not self.dynamic or not self.built:
            return tf.convert_to_tensor(self.initial_scale, tf.float32)
        return self._bounds.within(tf.convert_to_tensor(self.dynamic_scale))

    @property
    def dynamic_counter(self) -> Any:
        """The variable that counts finite steps since the scale last changed; None before there is one."""
        return self.step_counter if self.dynamic and self.built else None

    @property
    def loss_scale_factor(self) -> None:
        """The inner optimizer's: None, or the loss would be scaled twice."""
        return None

    @loss_scale_factor.setter
    def loss_scale_factor(self, value: float | None) -> None:
        if value is not None:
            raise ValueError(
                f"LossScaleOptimizer scales the loss already, and `loss_scale_factor` = {value} would scale it twice: "
                f"for a fixed scale, LossScaleOptimizer(optimizer, dynamic=False, initial_scale={value})."
            )

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the scale. After it `apply` expects scaled gradients, and unscales them."""
        self.__dict__["_apply_unscales"] = True
        return keras.ops.multiply(loss, self.loss_scale if self.built else self.initial_scale)

    def get_scaled_loss(self, loss: Any) -> Any:
        """The name in Keras 2 for `scale_loss`; takes a loss, or a function that returns one."""
        if callable(loss):
            return lambda: self.get_scaled_loss(loss())
        return loss * tf.cast(self.loss_scale, loss.dtype)

    def get_unscaled_gradients(self, grads: Any) -> list[Any]:
        """As in Keras 2: the gradients divided by the scale. `apply` does not unscale them again, clipped or not."""
        grads = list(grads)
        self.__dict__.update(_apply_unscales=False, _given_scaled=tuple(weakref.ref(g) for g in grads if g is not None))
        scale = self.loss_scale
        return [None if g is None else keras.ops.divide(g, tf.cast(scale, g.dtype)) for g in grads]

    # --- a step -----------------------------------------------------------------------------------------------
    def build(self, var_list: Any) -> None:
        if not var_list:  # loading an .h5 file asks for it before the model's variables are known
            return
        self.__dict__["_bounds"] = self._bounds.from_start(self.initial_scale)  # which may have been set since
        borrowed = {"use_ema": False, "gradient_accumulation_steps": None}
        self.__dict__.update(borrowed)  # averages and sums are the inner optimizer's
        try:
            super().build(var_list)
        finally:
            for name in borrowed:
                del self.__dict__[name]
        if self._bounds.hysteresis > 1:
            with tf.init_scope():
                self.bad_steps = tf.Variable(0, dtype=tf.int64, trainable=False, name="bad_steps")
        if self._kept_weights is not None:
            with tf.init_scope():
                self.set_weights(self.__dict__.pop("_kept_weights"))
            self.__dict__["_kept_weights"] = None

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        grads, trainable_variables = zip(*grads_and_vars)
        self.apply(grads, trainable_variables)
        return self.iterations

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """One step. `grads` scaled, by `scale_loss`, or unscaled by `get_unscaled_gradients`."""
        if tf.distribute.in_cross_replica_context():
            raise ValueError("apply() must be called in a replica context.")
        grads = list(grads)
        if not grads:
            return
        trainable_variables = None if trainable_variables is None else list(trainable_variables)
        if not self.built:
            with keras.name_scope(self.name, caller=self):
                self.build(trainable_variables)
            self.built = True
        scaled = self._apply_unscales or unscaled_among(grads, self._given_scaled)
        if tf.__internal__.distribute.strategy_supports_no_merge_call():
            self._step(None, grads, trainable_variables, scaled)
        else:
            replica = tf.distribute.get_replica_context()
            replica.merge_call(self._step, args=(grads, trainable_variables, scaled))

    def _step(self, strategy: Any, grads: list[Any], trainable_variables: Any, scaled: bool) -> None:
        """One step, in the context in which all replicas may take a branch together: `strategy` is given across
        replicas."""
        now = self.loss_scale
        scale = now if scaled else None

        def apply() -> None:
            if strategy is None:
                self._apply_inside(grads, trainable_variables, scale)
            else:
                strategy.extended.call_for_each_replica(self._apply_inside, args=(grads, trainable_variables, scale))

        finite = in_every_replica(all_finite, grads)
        if self.inner_optimizer.gradient_accumulation_steps:
            self._accumulate(finite, apply, grads, trainable_variables, scale)
        else:
            tf.cond(finite, apply, _nothing)
        self._move_scale(now, finite)

    def _apply_inside(self, grads: list[Any], trainable_variables: Any, scale: tf.Tensor | None) -> None:
        self.inner_optimizer.apply(
            self._unscaled(grads, trainable_variables, scale), trainable_variables=trainable_variables
        )

    def _unscaled(self, grads: list[Any], trainable_variables: Any, scale: tf.Tensor | None) -> list[Any]:
        if scale is None:
            return grads
        variables = trainable_variables or self._trainable_variables
        return [
            g if g is None or self._overwrite_variable_with_gradient(v) else keras.ops.divide(g, scale)
            for g, v in zip(grads, variables)
        ]

    def _move_scale(self, now: tf.Tensor, finite: tf.Tensor) -> None:
        if not self.dynamic:
            return
        has_hysteresis = self._bounds.hysteresis > 1
        counter = tf.convert_to_tensor(self.step_counter)
        state = ScaleState(now, counter, self.bad_steps if has_hysteresis else 0)
        after = after_step(self._machine, state, finite)
        self.dynamic_scale.assign(after.scale)
        self.step_counter.assign(after.counter)
        if has_hysteresis:
            self.bad_steps.assign(after.bad)

    # --- saving -----------------------------------------------------------------------------------------------
    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.keras_wrapper.get_config(self)
        config.update({} if self.dynamic else {"dynamic": False}, **self._bounds.in_config())
        return config

    @classmethod
    def from_own_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        config = dict(config)
        inner = config["inner_optimizer"]
        if isinstance(inner, dict):
            inner = keras.saving.deserialize_keras_object(inner, custom_objects=custom_objects)
        config["inner_optimizer"] = inner
        return cls(**config)

    def set_weights(self, weights: Any) -> None:
        """Set the variables of this optimizer and of the inner one, in the order of `variables`; Keras' own wrapper
        leaves the inner ones out. Weights from an .h5 file that arrive before the variables exist are kept for them."""
        weights = list(weights)
        if not self.built:
            self.__dict__["_kept_weights"] = [
                keras.ops.convert_to_numpy(value) for value in weights
            ]  # the file is closed soon
            return
        if len(weights) != len(self.variables):
            raise ValueError(
                f"The optimizer has {len(self.variables)} variables, and {len(weights)} weights were given."
            )
        for variable, weight in zip(self.variables, weights):
            variable.assign(weight)

    def save_own_variables(self, store: Any) -> None:
        """Keras' own wrapper takes no file with one variable more: the skipped steps are in it where there are some."""
        super().save_own_variables(store)
        if self.built and self._bounds.hysteresis > 1 and self.bad_steps.numpy():
            store["bad_steps"] = self.bad_steps.numpy()

    def load_own_variables(self, store: Any) -> None:
        store = {name: store[name] for name in store.keys()}  # noqa: SIM118
        bad_steps = store.pop("bad_steps", 0)
        super().load_own_variables(store)
        if self.built and self._bounds.hysteresis > 1:
            self.bad_steps.assign(bad_steps)


def _nothing() -> None:
    return None
