"""One batch, the same state, two loss scales: the gradient that arrives at the innermost optimizer must not change.

Scaling is linear, so with scale s a right training hands g to the innermost optimizer whatever s is. The exponent e in
|g| ~ s^e is 0 then; -1 where the gradient is divided by a scale that the loss never saw (or twice), +1 where it is
never divided. Measured where unscaled gradients arrive and before that optimizer's own clipping, because Adam,
clipping and moving averages hide the size of a gradient from the size of the update.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict

import tensorflow as tf

from mpdoctor.facts.training import ScaleDependenceFacts

# Pairs 2^6 apart; a pair is tried when the one before it overflows.
PAIRS = ((2.0**4, 2.0**10), (2.0**-2, 2.0**4), (2.0**-8, 2.0**-2))

Norms = Dict[str, float]


class GradientCatcher:
    """Stands in the place of the innermost optimizer's update: keeps the norms of what arrives, changes nothing."""

    def __init__(self, keras: Any, optimizer: Any) -> None:
        innermost = optimizer
        while keras.inner(innermost) is not None:
            innermost = keras.inner(innermost)
        self._keras, self._innermost = keras, innermost
        self._norms: Norms = {}

    def __enter__(self) -> GradientCatcher:
        self._release = self._keras.catch_gradients(self._innermost, self._catch)
        return self

    def __exit__(self, *error: Any) -> None:
        self._release()

    def _catch(self, gradients: list[Any], variables: list[Any]) -> None:
        for gradient, variable in zip(gradients, variables):
            if gradient is not None:
                values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
                self._norms[self._keras.path(variable)] = float(tf.norm(tf.cast(values, tf.float64)))

    def take(self) -> Norms:
        norms, self._norms = self._norms, {}
        return norms


def dependence_from_replays(
    set_scale: Callable[[float], None], replay: Callable[[], None], catcher: GradientCatcher
) -> tuple[float, float, Norms, Norms] | None:
    """Replay one step at two scales. None where every pair overflows or nothing arrives."""
    for low, high in PAIRS:
        norms = []
        for scale in (low, high):
            set_scale(scale)
            replay()
            norms.append(catcher.take())
        if norms[0] and norms[1] and all(math.isfinite(n) for side in norms for n in side.values()):
            return low, high, norms[0], norms[1]
    return None


def dependence_from_norms(
    low: float, high: float, at_low: Norms, at_high: Norms, scaled: bool | None, unscaled: bool | None
) -> ScaleDependenceFacts | None:
    """Exponents of every variable whose gradient was finite and not zero at both scales."""
    exponents = tuple(
        (path, math.log2(at_high[path] / at_low[path]) / math.log2(high / low))
        for path in at_low
        if 0 < at_low[path] < math.inf and 0 < at_high.get(path, 0) < math.inf
    )
    return ScaleDependenceFacts(low, high, exponents, scaled, unscaled) if exponents else None


def mean_of_norms(sides: list[Norms]) -> Norms:
    return {path: sum(norms.get(path, math.nan) for norms in sides) / len(sides) for path in sides[0]}
