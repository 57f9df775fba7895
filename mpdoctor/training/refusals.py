"""Refuses arguments and set-ups that cannot work, with messages that say what to do instead."""

from __future__ import annotations

import math
import numbers
from typing import Any, Mapping

import tensorflow as tf


def refuse_inner(inner: Any, is_keras: bool) -> None:
    """TypeError where this is nothing that a loss scale can be put around."""
    if inner is None or isinstance(inner, (str, Mapping)):
        name = inner or "adam"
        raise TypeError(
            '"inner_optimizer" must be an instance of `tf.keras.optimizers.Optimizer` or '
            f"`tf.keras.optimizers.experimental.Optimizer`, but got: {inner!r}. "
            f"Give the optimizer itself: LossScaleOptimizer(keras.optimizers.get({name!r}))."
        )
    if isinstance(inner, type):
        raise TypeError(
            f'"inner_optimizer" must be an optimizer, but got the class {inner.__name__}: make one first, '
            f"LossScaleOptimizer({inner.__name__}())."
        )
    if not is_keras:
        raise TypeError(
            '"inner_optimizer" must be an instance of `tf.keras.optimizers.Optimizer` or '
            f"`tf.keras.optimizers.experimental.Optimizer`, but got: {inner}. Optimizers of tf.compat.v1 and of other "
            "libraries have no counterpart here: take the one of the Keras that the model is made with."
        )


def refuse_wrapper_inside(inner: Any, wrapper: type) -> None:
    if isinstance(inner, wrapper):
        raise TypeError(
            f"LossScaleOptimizer cannot wrap another LossScaleOptimizer, but got: {inner}. The loss would be scaled "
            "twice: give it the optimizer inside, LossScaleOptimizer(optimizer.inner_optimizer)."
        )


def refuse_bypassed_override(inner: Any, base: type, bypassed: str, called: str) -> None:
    """TypeError where the class of an optimizer overrides a method that is never called, and not the one that is."""
    cls = type(inner)
    if getattr(cls, bypassed, None) is getattr(base, bypassed, None):
        return
    if getattr(cls, called) is getattr(base, called):
        raise TypeError(
            f"{cls.__name__} overrides `{bypassed}`, which a LossScaleOptimizer never calls (it calls `{called}`): "
            f"what the override does would be left out. In {cls.__name__} override `{called}` instead of `{bypassed}`."
        )


def refuse_variables_of_keras3(variables: Any, inner: Any) -> None:
    """TypeError where an optimizer of Keras 2 is to train the variables of a Keras 3 model."""
    for variable in variables:
        if not isinstance(variable, tf.Variable) and type(variable).__module__.startswith("keras."):
            package = type(inner).__module__.split(".")[0]
            raise TypeError(
                f"The model is of Keras 3, and {type(inner).__name__} is an optimizer of {package}: take "
                f"keras.optimizers.{type(inner).__name__}, or make the model with {package}."
            )


def checked_numbers(initial_scale: Any, floor: Any, cap: Any, hysteresis: Any) -> None:
    """ValueError where a scale could not move between them."""
    for name, value in (("initial_scale", initial_scale), ("floor", floor), ("cap", cap)):
        if isinstance(value, (bool, str)) or not _is_positive(value):
            raise ValueError(f'"{name}" must be a positive, finite number, but got: {value!r}.')
    if not floor <= cap or initial_scale > cap:
        raise ValueError(
            f"The loss scale starts at {initial_scale:g}, to stay between {floor:g} and {cap:g}: give a larger cap."
        )
    if not _is_whole(hysteresis) or hysteresis < 1:
        raise ValueError(f'"hysteresis" must be a whole number of skipped steps, at least 1, but got: {hysteresis!r}.')


def checked_growth_steps(steps: Any) -> int | None:
    """The number of steps as an int, or None as given. Raises ValueError where it is no whole number."""
    if steps is None:
        return None
    if not (_is_whole(steps) or (isinstance(steps, float) and steps.is_integer())):
        raise ValueError(
            '"dynamic_growth_steps" must be a whole number of finite steps, after which the scale grows, but got: '
            f"{steps!r}."
        )
    return int(steps)


def refuse_settings_of_inner(settings: Mapping[str, Any], inner: Any) -> None:
    """TypeError where Keras 2's wrapper is given what it has no argument for."""
    if settings:
        names = " and ".join(f"`{name}`" for name in settings)
        are_none = "is no argument" if len(settings) == 1 else "are no arguments"
        raise TypeError(
            f"{names} {are_none} of LossScaleOptimizer in Keras 2: what is a setting of the optimizer inside is given "
            f"to that one, LossScaleOptimizer({type(inner).__name__}(...))."
        )


def checked_fixed(dynamic: Any, initial_scale: Any, growth_steps: Any) -> None:
    """Keras' own words where it has some."""
    if not isinstance(dynamic, bool):
        raise TypeError(
            f'"dynamic" argument to LossScaleOptimizer.__init__ must be a bool, but got: {dynamic!r}. '
            "LossScaleOptimizer(optimizer, dynamic=False, initial_scale=1024.0) has a fixed scale."
        )
    if dynamic:
        return
    if initial_scale is None:
        raise ValueError(
            '"initial_scale" must be specified if "dynamic" is False: '
            "LossScaleOptimizer(optimizer, dynamic=False, initial_scale=1024.0). In Keras 3 you may also leave out the "
            "LossScaleOptimizer and set `loss_scale_factor` on the optimizer itself."
        )
    if growth_steps is not None:
        raise ValueError(
            f'"dynamic_growth_steps" must be None if "dynamic" is False, but got: {growth_steps}. A fixed scale never '
            "grows: leave it out."
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_positive(value: Any) -> bool | None:
    try:
        return 0.0 < float(value) < math.inf
    except (TypeError, ValueError):
        return False
