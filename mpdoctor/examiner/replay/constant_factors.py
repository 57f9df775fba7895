"""The numbers by which a step multiplies: among them a loss scale that was read before, whatever the scale is now."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Callable, Iterator

import tensorflow as tf
from tensorflow.python.ops import gen_math_ops

from mpdoctor.examiner.keras import adopted_wrappers
from mpdoctor.examiner.process.patching import replace_for_now
from mpdoctor.examiner.replay.variable_snapshot import variables_alive

if TYPE_CHECKING:
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer


class ConstantFactors:
    """While this context is active, `numbers` collects the numbers above 1 by which the training code multiplies
    tensors. For steps that run eagerly."""

    def __init__(self) -> None:
        self.numbers: set[float] = set()
        self._moves_a_scale = False

    def __enter__(self) -> ConstantFactors:
        self._release = [
            replace_for_now(gen_math_ops, "mul", self._multiply),
            replace_for_now(adopted_wrappers, "advanced", self._advance),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        while self._release:
            self._release.pop()()

    def take(self) -> frozenset[float]:
        """The numbers since the last call."""
        numbers = frozenset(self.numbers)
        self.numbers.clear()
        return numbers

    def _multiply(
        self, original: Callable[..., object], one: object, other: object, *args: object, **kwargs: object
    ) -> object:
        if not self._moves_a_scale:
            self.numbers.update(number for number in map(number_in, (one, other)) if number > 1)
        return original(one, other, *args, **kwargs)

    def _advance(self, original: Callable[..., object], *args: object, **kwargs: object) -> object:
        """A growing loss scale is multiplied by 2: that of an optimizer whose scale stays the same at both loss scales
        at which a step is repeated would look like a factor of the loss."""
        self._moves_a_scale = True
        try:
            return original(*args, **kwargs)
        finally:
            self._moves_a_scale = False


def number_in(value: object) -> float:
    """The finite number that a float or a scalar with numbers holds; 0 for anything else, and while a graph is traced,
    as by `tape.jacobian` in an eager step."""
    if isinstance(value, float):
        number = value
    elif tf.is_tensor(value) and not tf.executing_eagerly():
        return 0.0
    else:
        is_scalar = getattr(value, "shape", None) == () and hasattr(value, "numpy" if tf.is_tensor(value) else "item")
        if not is_scalar or not tf.as_dtype(value.dtype).is_floating:  # type: ignore[attr-defined]
            return 0.0
        # a strategy's variable has a value for each replica, and gives that of the one at hand
        number = float(tf.identity(value) if tf.is_tensor(value) else value)  # type: ignore[arg-type]
    return number if math.isfinite(number) else 0.0


def may_be_given(
    observed: ObservedOptimizer, observed_optimizers: list[ObservedOptimizer], factors: tuple[float, ...]
) -> bool:
    """Whether the last step multiplied by the loss scale in force and may be given it anew each time: in an argument,
    or in a variable of the program's, which none of the LossScaleOptimizers of these optimizers keeps its scale in."""
    scale = observed.steps[-1].loss_scale
    if scale is None or scale not in factors:
        return False
    if any(number_in(part) == scale for part in tf.nest.flatten(observed.given)):
        return True
    scales = {id(variable) for each in observed_optimizers for variable in _scale_variables(each)}
    others = (variable for variable in variables_alive() if variable.shape == () and id(variable) not in scales)
    return any(number_in(tf.identity(variable)) == scale for variable in others)


def _scale_variables(observed: ObservedOptimizer) -> Iterator[tf.Variable]:
    """The variables in which the LossScaleOptimizers of a chain keep their scales."""
    for wrapper in [] if observed.machine is None else observed.chain[:-1]:
        if not observed.keras.has_no_scale_variable(wrapper):
            yield observed.keras.scale_variable(wrapper)
