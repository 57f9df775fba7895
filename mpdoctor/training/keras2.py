"""Keras 2 (tf.keras from TensorFlow 2.4 to 2.15, tf_keras): its own LossScaleOptimizer with our state machine."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import tensorflow as tf

from mpdoctor.facts.half_dtypes import DEFAULT_SCALE
from mpdoctor.loss_scale import LossScale, ScaleState
from mpdoctor.training.delegation import Delegated, delegations_of_base
from mpdoctor.training.refusals import (
    checked_fixed,
    checked_growth_steps,
    refuse_bypassed_override,
    refuse_settings_of_inner,
    refuse_variables_of_keras3,
    refuse_wrapper_inside,
)
from mpdoctor.training.scaling import (
    CAP,
    FLOOR,
    HYSTERESIS,
    Bounds,
    after_step,
    all_finite,
    in_every_replica,
    unscaled_among,
)

KerasOwn: Any = object  # for type checkers: Keras' own class, which stands behind these methods
# They scale the loss, or call what does.
KEPT = ("minimize", "apply_gradients", "compute_gradients", "get_gradients", "get_updates", "get_config", "from_config")
STATE = "loss_scale_state"

_state_classes: dict[type, tuple[type, type]] = {}


class Keras2Scaling(KerasOwn):
    """Stands before a LossScaleOptimizer of Keras 2 among the bases of a class."""

    keras_wrapper: Any
    own_attributes: frozenset[str] = frozenset()

    @classmethod
    def delegations(cls, wrapper: type, base: type) -> dict[str, Delegated]:
        return delegations_of_base(wrapper, base, KEPT + tuple(vars(cls)))

    def __init__(
        self,
        inner_optimizer: Any,
        dynamic: bool = True,
        initial_scale: float | None = None,
        dynamic_growth_steps: int | None = None,
        *,
        floor: float = FLOOR,
        cap: float = CAP,
        hysteresis: int = HYSTERESIS,
        **settings_of_inner: Any,
    ) -> None:
        refuse_settings_of_inner(settings_of_inner, inner_optimizer)
        refuse_wrapper_inside(inner_optimizer, self.keras_wrapper)
        base = next(cls for cls in self.keras_wrapper.__mro__ if cls.__name__ in ("Optimizer", "OptimizerV2"))
        refuse_bypassed_override(inner_optimizer, base, "minimize", "apply_gradients")
        checked_fixed(dynamic, initial_scale, dynamic_growth_steps)
        dynamic_growth_steps = checked_growth_steps(dynamic_growth_steps)
        bounds = Bounds(DEFAULT_SCALE if initial_scale is None else initial_scale, floor, cap, hysteresis)
        super().__init__(
            inner_optimizer, dynamic=dynamic, initial_scale=initial_scale, dynamic_growth_steps=dynamic_growth_steps
        )
        # past the tracking of attributes: these are no state
        self.__dict__.update(_bounds=bounds, _apply_unscales=False, _given_scaled=(), _is_dynamic=dynamic)
        moved, fixed = _states_of(self.keras_wrapper)
        if dynamic:
            state = self._loss_scale
            state.__class__ = moved
            state.take(bounds.machine(state.initial_loss_scale, state.growth_steps), bounds)
        else:
            self.__dict__["_loss_scale"] = fixed(initial_scale)

    # --- the scale --------------------------------------------------------------------------------------------
    @property
    def dynamic(self) -> bool:
        return bool(self.__dict__.get("_is_dynamic", True))

    @property
    def loss_scale(self) -> tf.Tensor:
        """The current loss scale, a float32 scalar."""
        if not self.dynamic:
            return tf.convert_to_tensor(self._loss_scale.initial_loss_scale, tf.float32)
        return self._bounds.within(tf.convert_to_tensor(self._loss_scale.current_loss_scale))

    @property
    def dynamic_counter(self) -> Any:
        return self._loss_scale.counter if self.dynamic else None

    @property
    def initial_scale(self) -> float:
        return float(self._loss_scale.initial_loss_scale)

    @property
    def dynamic_growth_steps(self) -> int | None:
        return int(self._loss_scale.growth_steps) if self.dynamic else None

    def scale_loss(self, loss: Any) -> Any:
        """The name in Keras 3 for `get_scaled_loss`. After it `apply` and `apply_gradients` expect scaled gradients,
        and unscale them."""
        scaled = super().get_scaled_loss(loss)
        self.__dict__["_apply_unscales"] = True
        return scaled

    def get_scaled_loss(self, loss: Any) -> Any:
        self.__dict__["_apply_unscales"] = False
        return super().get_scaled_loss(loss)

    def get_unscaled_gradients(self, grads: Any) -> list[Any]:
        grads = list(grads)
        self.__dict__.update(
            _given_scaled=tuple(weakref.ref(g) for g in grads if g is not None) if self._apply_unscales else ()
        )
        self.__dict__["_apply_unscales"] = False
        return list(super().get_unscaled_gradients(grads))

    # --- a step -----------------------------------------------------------------------------------------------
    def apply(self, grads: Any, trainable_variables: Any) -> Any:
        """The name that Keras 3 has for it."""
        return self.apply_gradients(zip(grads, trainable_variables))

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        refuse_variables_of_keras3([v for _, v in pairs], self._optimizer)
        grads = [g for g, _ in pairs]
        if self._apply_unscales or unscaled_among(grads, self._given_scaled):
            unscaled = super().get_unscaled_gradients(grads)
            pairs = [(g, v) for g, (_, v) in zip(unscaled, pairs)]
        return super().apply_gradients(pairs, *args, **kwargs)

    # --- saving -----------------------------------------------------------------------------------------------
    def get_config(self) -> dict[str, Any]:
        """The configuration with the current loss scale, where Keras' own wrapper does not save it: in Keras 2 no file
        but a checkpoint has a place for it among an optimizer's variables."""
        config: dict[str, Any] = self.keras_wrapper.get_config(self)
        config.update(self._bounds.in_config())
        if self.dynamic and tf.executing_eagerly():
            state = self._loss_scale.now()
            if state != self._loss_scale.at_start():
                config["inner_optimizer"] = {**config["inner_optimizer"], STATE: state}
        return config

    @classmethod
    def from_own_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        config = dict(config)
        inner = config.get("inner_optimizer")
        if inner is not None and not isinstance(inner, dict):
            return cls(**config)
        state = None
        if inner is not None:
            state = inner.get(STATE)
            config["inner_optimizer"] = {name: value for name, value in inner.items() if name != STATE}
        optimizer = cls.keras_wrapper.from_config.__func__(cls, config, custom_objects)
        if state is not None and optimizer.dynamic:
            optimizer._loss_scale.restore(state)
        return optimizer


def _states_of(wrapper: type) -> tuple[type, type]:
    """(of a dynamic scale, of a fixed one), for this Keras."""
    base: type = sys.modules[wrapper.__module__]._DynamicLossScaleState
    if base not in _state_classes:
        _state_classes[base] = (
            type("MovedState", (Moved, base), {}),
            type("FixedState", (Fixed, base), {}),
        )
    return _state_classes[base]


class Moved(KerasOwn):
    """Stands before Keras' state of a dynamic loss scale, with its variables under their names."""

    machine: LossScale
    current_loss_scale: Any
    counter: Any
    bounds: Bounds
    bad_steps: Any

    def take(self, machine: LossScale, bounds: Bounds) -> None:
        self.machine, self.bounds = machine, bounds
        self.bad_steps = 0
        if bounds.hysteresis > 1:
            self.bad_steps = self._add_weight("bad_steps", 0, tf.int64)

    def update(self, grads: Any) -> Any:
        """(operation that moves the scale, whether the step is to be applied)"""
        finite = in_every_replica(all_finite, tf.nest.flatten(grads))
        scale = self.bounds.within(tf.convert_to_tensor(self.current_loss_scale))
        state = ScaleState(scale, tf.convert_to_tensor(self.counter), self.bad_steps)
        after = after_step(self.machine, state, finite)
        moves = [self.current_loss_scale.assign(after.scale), self.counter.assign(after.counter)]
        if self.bounds.hysteresis > 1:
            moves.append(self.bad_steps.assign(after.bad))
        return tf.group(*moves), finite

    def at_start(self) -> dict[str, Any]:
        scale, counter, bad = self.machine.start()
        return {"loss_scale": scale, "dynamic_counter": counter, "bad_steps": bad}

    def now(self) -> dict[str, Any]:
        return {
            "loss_scale": float(self.current_loss_scale.numpy()),
            "dynamic_counter": int(self.counter.numpy()),
            "bad_steps": int(self.bad_steps),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Set the state that `now` returned."""
        self.current_loss_scale.assign(state["loss_scale"])
        self.counter.assign(state["dynamic_counter"])
        if self.bounds.hysteresis > 1:
            self.bad_steps.assign(state["bad_steps"])


class Fixed(KerasOwn):
    """Stands before Keras' state, without variables: the scale stays, and steps that are not finite are skipped."""

    def __init__(self, scale: float) -> None:
        self._initial_loss_scale = float(scale)

    def update(self, grads: Any) -> Any:
        return tf.no_op(), in_every_replica(all_finite, tf.nest.flatten(grads))
