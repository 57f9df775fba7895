"""The numbers of a loss-scale optimizer, read from the host every n steps: Keras' own of every generation, or ours.

Nothing is added to the training's graph. In Keras 3 `iterations` count the applied steps alone, so the steps taken less
those are the skipped ones. In Keras 2 they count the skipped ones, too (measured in TensorFlow 2.4, 2.10, 2.15 and
tf_keras): there the scale and the counter of finite steps tell, which is 0 after a skipped step or growth.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import tensorflow as tf

from mpdoctor.loss_scale import FLOAT32_MAX

KERAS2_FLOOR = 1.0


class Reading(NamedTuple):
    """The loss scale, the applied steps so far, and the finite steps since the scale last moved (None: unknown)."""

    scale: float
    applied: int
    counter: int | None


class WatchedOptimizer:
    """A loss-scale optimizer, and where each Keras keeps its numbers."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.inner = optimizer.inner_optimizer
        self.counts_applied = _is_of_keras3(optimizer)
        self.accumulates = bool(getattr(self.inner, "gradient_accumulation_steps", None))
        self.is_dynamic = bool(getattr(optimizer, "dynamic", True))

    @property
    def floor(self) -> float | None:
        """Below which the scale never falls: ours and Keras 2's have one, Keras 3's none."""
        bounds = getattr(self.optimizer, "_bounds", None)
        if bounds is not None:
            return min(float(bounds.floor), self.initial_scale)
        return None if self.counts_applied else KERAS2_FLOOR

    @property
    def cap(self) -> float:
        """Beyond which it does not grow; its counter begins anew all the same."""
        bounds = getattr(self.optimizer, "_bounds", None)
        if bounds is not None:
            return float(bounds.cap)
        return math.inf if self.counts_applied else FLOAT32_MAX

    @property
    def initial_scale(self) -> float:
        return float(self.optimizer.initial_scale)

    @property
    def growth_interval(self) -> int | None:
        steps = getattr(self.optimizer, "dynamic_growth_steps", None)
        return None if steps is None else int(steps)

    def names(self) -> list[str]:
        return [type(self.optimizer).__name__, type(self.inner).__name__]

    def keras(self) -> str:
        """Package and version of the Keras that it is of: "keras 3.15.1", "tf_keras 2.21.0", "tf.keras 2.4.0"."""
        modules = [base.__module__.split(".")[0] for base in type(self.optimizer).__mro__]
        package = next((name for name in modules if name in ("keras", "tf_keras")), "")
        if package == "tf_keras" or (package == "keras" and self.counts_applied):
            return f"{package} {sys.modules[package].__version__}"
        return f"tf.keras {tf.__version__}"

    def read(self) -> Reading:
        counter = self._counter()
        return Reading(self._scale(), _int(self.inner.iterations), None if counter is None else _int(counter))

    def _scale(self) -> float:
        scale = getattr(self.optimizer, "dynamic_scale", None)  # Keras 3's variable, there once it is built
        if scale is None:
            scale = getattr(self.optimizer, "loss_scale", None)
        return self.initial_scale if scale is None else float(_number(scale))

    def _counter(self) -> Any:
        counter = getattr(self.optimizer, "dynamic_counter", None)
        return getattr(self.optimizer, "step_counter", None) if counter is None else counter

    def skipped(self, steps: int, before: Reading, after: Reading) -> int:
        """How many of the `steps` between two readings were skipped. Exact for up to `steps_until_reading` steps; for
        more of them in Keras 2, as many as the counter allows."""
        reached = after.applied - before.applied
        if self.counts_applied and not self.accumulates:
            return 0 if self._went_on(reached, before, after) else min(max(steps - reached, 0), steps)
        if not self.counts_applied:  # a step may leave it out: that of a GAN has two, and not each is given gradients
            steps = min(steps, reached)
            if steps <= 0:
                return 0
        if before.counter is None or after.counter is None:
            return min(self._skips_of_fall(before, after), steps)
        if (after.scale, after.counter) == self._without_skips(steps, before):
            return 0
        most = max(steps - after.counter, 1)
        if self.floor is not None and after.scale <= self.floor:
            return most
        return min(max(self._skips_of_fall(before, after), 1), most)

    def _went_on(self, applied: int, before: Reading, after: Reading) -> bool:
        """Whether scale and counter show that so many were applied and none skipped: the other steps never came to this
        optimizer. A skipped one would have set the counter back, or halved the scale. Unbuilt, it has none."""
        if not self.is_dynamic or not 0 < before.scale < math.inf:
            return False
        if self.floor is not None and before.scale <= self.floor:
            return False
        counter = before.counter or 0
        grows = self.growth_interval is not None and counter + applied >= self.growth_interval
        if grows or (self._hysteresis() > 1 and not counter):
            return False
        return (after.scale, after.counter or 0) == (before.scale, counter + applied)

    def steps_until_reading(self, reading: Reading) -> int | None:
        """The most steps after which the next reading still shows exactly how many were skipped, and what the scale
        did; None: any number. In Keras 2 that holds while the scale can neither reach its floor nor grow before the
        last step, in Keras 3 while it cannot grow after it was halved."""
        if not self.is_dynamic:
            return None
        if self.counts_applied and not self.accumulates:
            return max(self.growth_interval or 0, 0) or None  # below 1 it never grows
        if self._hysteresis() > 1:
            return 1  # of several skipped steps the scale need not show one
        halvings = math.log2(reading.scale / self.floor) if self.floor and reading.scale > self.floor else 0
        to_growth = (self.growth_interval or 1) - (reading.counter or 0)
        return max(1, min(int(halvings), to_growth))

    def halvings(self, steps: int, skipped: int, before: Reading, after: Reading) -> int | None:
        """How often the scale was halved in these steps. None where that is not known."""
        least = min(before.scale, after.scale)
        if not self.is_dynamic or self._hysteresis() > 1 or (self.floor is not None and least <= self.floor):
            return None
        return skipped if steps <= (self.growth_interval or steps) else None

    def _without_skips(self, steps: int, before: Reading) -> tuple[float, int]:
        """The scale and the counter that so many finite steps lead to."""
        counted = (before.counter or 0) + steps
        interval = self.growth_interval
        if not self.is_dynamic or not interval:
            return before.scale, counted
        scale = before.scale
        for _ in range(counted // interval):
            scale = scale * 2 if scale * 2 <= self.cap else scale
        return scale, counted % interval

    def _skips_of_fall(self, before: Reading, after: Reading) -> int:
        """One for each time that the scale was halved, or as many as the hysteresis asks for."""
        if not 0 < after.scale < before.scale < math.inf:
            return 0
        return round(math.log2(before.scale / after.scale)) * self._hysteresis()

    def _hysteresis(self) -> int:
        bounds = getattr(self.optimizer, "_bounds", None)
        return 1 if bounds is None else int(bounds.hysteresis)


def _is_of_keras3(optimizer: Any) -> bool:
    bases = type(optimizer).__mro__
    return any(base.__name__ == "BaseOptimizer" and base.__module__.startswith("keras.") for base in bases)


def loss_scale_optimizer_in(optimizer: Any) -> Any:
    """The optimizer that scales the loss: it, or one that it is around; None where none does."""
    seen: list[Any] = []
    while optimizer is not None and all(optimizer is not other for other in seen):
        if hasattr(optimizer, "inner_optimizer") and hasattr(optimizer, "initial_scale"):
            return optimizer
        seen.append(optimizer)
        inside = getattr(optimizer, "__dict__", {})
        optimizer = inside.get("inner_optimizer") or inside.get("_optimizer") or inside.get("optimizer")
    return None


def _number(value: Any) -> Any:
    """The number in a variable or tensor; a Python number as it is."""
    value = getattr(value, "value", value) if type(value).__module__.startswith("keras.") else value
    return value.numpy() if hasattr(value, "numpy") else value


def _int(value: Any) -> int:
    return int(_number(value))
