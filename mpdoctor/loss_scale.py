"""The state machine of a dynamic loss scale, pure: one step from (scale, counter) to (scale, counter).

The same lines serve Python numbers and tensors: `where(condition, yes, no)` is all that differs. It is the scheme
of Micikevicius et al., "Mixed Precision Training" (2018), section 3.2, as Keras implements it: after a step with
an inf or NaN gradient the scale is multiplied by `backoff` and the step is skipped; after `growth_interval` finite
steps in a row it is multiplied by `growth`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterable, NamedTuple

from mpdoctor.facts.half_dtypes import DEFAULT_SCALE

FLOAT32_MAX = 3.4028234663852886e38


class ScaleState(NamedTuple):
    """The loss scale between two steps.

    scale
        The loss scale, float32, at least 0.
    counter
        Finite steps since the scale last changed or a step was skipped.
    bad
        Non-finite steps in a row; it only moves where `hysteresis` is above 1.
    """

    scale: Any
    counter: Any
    bad: Any = 0


class Transition(NamedTuple):
    """The state after a step, and whether the step's gradients are to be applied."""

    state: ScaleState
    apply: Any


def where_python(condition: Any, yes: Any, no: Any) -> Any:
    """`where` for plain Python numbers."""
    return yes if condition else no


@dataclass(frozen=True)
class LossScale:
    """The parameters of a dynamic loss scale.

    growth_interval
        Finite steps in a row before the scale grows; None: it never grows.
    floor
        The scale never falls below it (Keras 2: 1.0; Keras 3: None).
    cap
        A scale beyond it is not taken (Keras 2: the largest float32; Keras 3: None, so that it grows to inf).
    hysteresis
        Non-finite steps in a row before the scale falls; the steps are skipped all the same. 1 in every Keras.
    """

    initial_scale: float = DEFAULT_SCALE
    growth_interval: int | None = 2000
    growth: float = 2.0
    backoff: float = 0.5
    floor: float | None = None
    cap: float | None = None
    hysteresis: int = 1

    def start(self) -> ScaleState:
        return ScaleState(self.initial_scale, 0, 0)

    def step(self, state: ScaleState, finite: Any, where: Callable[[Any, Any, Any], Any] = where_python) -> Transition:
        """One step whose gradients were all finite (`finite` true), or not."""
        scale, counter, bad = state
        counted, none = counter + 1, counter * 0  # once: of tensors each is an operation
        grown, grown_counter = scale, counted
        if self.growth_interval is not None:
            due = counted >= self.growth_interval
            larger = scale * self.growth
            if self.cap is not None:
                larger = where(larger <= self.cap, larger, scale)
            grown, grown_counter = where(due, larger, scale), where(due, none, counted)
        smaller = scale * self.backoff
        if self.floor is not None:
            smaller = where(smaller < self.floor, self.floor, smaller)
        still_bad = bad
        if self.hysteresis > 1:
            patience_over = bad + 1 >= self.hysteresis
            smaller = where(patience_over, smaller, scale)
            still_bad = where(finite, bad * 0, where(patience_over, bad * 0, bad + 1))
        after = ScaleState(where(finite, grown, smaller), where(finite, grown_counter, none), still_bad)
        return Transition(after, finite)

    def trajectory(self, finite_steps: Iterable[bool]) -> list[float]:
        """The scale that each step is scaled with, the initial one first."""
        state, scales = self.start(), []
        for finite in finite_steps:
            scales.append(state.scale)
            state = self.step(state, finite).state
        return scales


def keras3(initial_scale: float, growth_interval: int) -> LossScale:
    """Keras 3: neither floor nor cap. It compares the counter with `growth_interval - 1`, so below 1 it never grows."""
    return LossScale(initial_scale, growth_interval if growth_interval >= 1 else None)


def keras2(initial_scale: float, growth_interval: int) -> LossScale:
    """Keras 2 (tf.keras to TensorFlow 2.15, tf_keras): never below 1, and grown only while it stays finite."""
    return LossScale(initial_scale, growth_interval, floor=1.0, cap=FLOAT32_MAX)
