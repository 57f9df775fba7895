"""Runs one batch from one state at two loss scales: the gradients that reach the innermost optimizer must be equal.

Scaling is linear, so with scale s a right training hands g to the innermost optimizer whatever s is. The exponent e in
|g| ~ s^e is 0 then; -1 where the gradient is divided by a scale that the loss never saw (or twice), +1 where it is
never divided. Measured where unscaled gradients arrive and before that optimizer's own clipping, because Adam,
clipping and moving averages hide the size of a gradient from the size of the update.

The loss and the gradients are measured on their way there, too, which tells the forms of the defect apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Callable, Dict, NamedTuple

import tensorflow as tf

from mpdoctor.examiner.process.patching import replace_for_now
from mpdoctor.examiner.replay.constant_factors import ConstantFactors
from mpdoctor.examiner.replay.magnitudes import is_floating, state_of
from mpdoctor.examiner.replay.step_observer import Enough
from mpdoctor.facts.training import ScaleDependenceFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasOptimizer, KerasVariable


EQUAL = 1e-3  # how far a quotient may be from 1, or from the loss scale

Norms = Dict[str, float]


class Passage(NamedTuple):
    """The way of the gradients in one step: norms by variable. `loss`: what the tape differentiated."""

    arrived: Norms  # at the innermost optimizer
    applied: Norms  # at the outermost
    taped: Norms  # from the tape
    loss: float
    unscaled_calls: int
    loss_dtype: str  # of the loss that is scaled, "" where none is
    too_large: float | None  # that loss, where it is finite and the scaled one is not
    added_up: Norms  # of all that tapes gave for a variable, where more than one did
    factors: frozenset[float]  # the numbers by which the step multiplied


class GradientCatcher:
    """Stands in the place of the innermost optimizer's update: keeps the norms of what arrives, changes nothing.

    `caught`: (gradient, variable) since the last `take()`.
    `stops`: the call that the step belongs to holds more steps, and is ended after the first, with Enough; a step whose
    gradients are not finite, and never arrive, ends it as well."""

    def __init__(self, keras: KerasAdapter, optimizer: KerasOptimizer) -> None:
        self.stops = False
        self._keras, self._chain = keras, [optimizer]
        while (inner := keras.inner(self._chain[-1])) is not None:
            self._chain.append(inner)
        self._factors = ConstantFactors()
        self._clear()

    @property
    def wrappers(self) -> int:
        return len(self._chain) - 1

    def _clear(self) -> None:
        self.caught: list[tuple[tf.Tensor, KerasVariable]] = []
        self._arrived: Norms = {}
        self._applied: Norms = {}
        self._taped: list[tuple[float, Norms]] = []
        # by variable, since two can have one name in Keras 2: its path, how many tapes gave what in all
        self._sums: dict[int, tuple[str, int, tf.Tensor]] = {}
        self._unscaled_calls, self._loss_dtype = 0, ""
        self._too_large: float | None = None

    def __enter__(self) -> GradientCatcher:
        keras = self._keras
        self._factors.__enter__()
        self._release = [
            self._factors.__exit__,
            keras.catch_gradients(self._chain[-1], self._catch),
            replace_for_now(tf.GradientTape, "gradient", self._differentiate),
            *(replace_for_now(cls, name, self._scale) for cls, name in keras.scaling_methods()),
            *(replace_for_now(cls, name, self._unscale) for cls, name in keras.unscaling_methods()),
            *(replace_for_now(cls, name, self._apply) for cls, name in keras.apply_methods()),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        while self._release:
            self._release.pop()()

    def _catch(self, gradients: list[tf.Tensor], variables: list[KerasVariable]) -> None:
        self.caught += [
            (gradient, variable) for gradient, variable in zip(gradients, variables) if gradient is not None
        ]
        self._arrived.update(self._norms(gradients, variables))
        if self.stops:
            raise Enough

    def _apply(
        self, original: Callable[..., object], optimizer: KerasOptimizer, *args: object, **kwargs: object
    ) -> object:
        if optimizer is self._chain[0]:
            (args, kwargs), gradients, variables = self._keras.gradients_and_variables(optimizer, args, kwargs)
            norms = self._norms(gradients, variables)
            self._applied.update(norms)
            if self.stops and not all(map(math.isfinite, norms.values())):
                raise Enough
        return original(optimizer, *args, **kwargs)

    def _differentiate(
        self,
        original: Callable[..., object],
        tape: tf.GradientTape,
        target: tf.Tensor,
        sources: object,
        *args: object,
        **kwargs: object,
    ) -> object:
        gradients = original(tape, target, sources, *args, **kwargs)
        if not tf.executing_eagerly():
            return gradients  # what `tape.jacobian` traces has no numbers
        loss = sum(abs(float(tf.reduce_sum(tf.cast(t, tf.float64)))) for t in tf.nest.flatten(target) if is_floating(t))
        variables = tf.nest.flatten(sources)
        named = [hasattr(variable, "name") and hasattr(variable, "assign") for variable in variables]
        if all(named):
            self._taped.append((loss, self._norms(tf.nest.flatten(gradients), variables)))
            self._add_up(tf.nest.flatten(gradients), variables)
        return gradients

    def _add_up(self, gradients: list[tf.Tensor], variables: list[KerasVariable]) -> None:
        for gradient, variable in zip(gradients, variables):
            path, times, total = self._sums.get(id(variable), (self._keras.path(variable), 0, gradient))
            if gradient is not None:
                dense = tf.convert_to_tensor(total) + tf.convert_to_tensor(gradient) if times else gradient
                self._sums[id(variable)] = path, times + 1, dense

    def _scale(
        self,
        original: Callable[..., object],
        optimizer: KerasOptimizer,
        loss: tf.Tensor,
        *args: object,
        **kwargs: object,
    ) -> object:
        result = original(optimizer, loss, *args, **kwargs)
        if is_floating(loss) and is_floating(result):
            self._loss_dtype = loss.dtype.name
            if state_of(result) and not state_of(loss):
                self._too_large = float(tf.reduce_max(tf.abs(loss)))
        return result

    def _unscale(
        self, original: Callable[..., object], optimizer: KerasOptimizer, *args: object, **kwargs: object
    ) -> object:
        self._unscaled_calls += 1
        return original(optimizer, *args, **kwargs)

    def _norms(self, gradients: list[tf.Tensor], variables: list[KerasVariable]) -> Norms:
        norms = {}
        for gradient, variable in zip(gradients, variables):
            if gradient is not None:
                norms[self._keras.path(variable)] = float(tf.norm(_dense_values(gradient)))
        return norms

    def take(self) -> Passage:
        """What was caught in the step since the last call."""
        taped = [(loss, norms) for loss, norms in self._taped if set(norms) & set(self._arrived)]
        passage = Passage(
            arrived=self._arrived,
            applied=self._applied,
            taped={path: norm for _, norms in taped for path, norm in norms.items()},
            loss=sum(loss for loss, _ in taped) if taped else math.nan,
            unscaled_calls=self._unscaled_calls,
            loss_dtype=self._loss_dtype,
            too_large=self._too_large,
            added_up={
                path: float(tf.norm(_dense_values(total))) for path, times, total in self._sums.values() if times > 1
            },
            factors=self._factors.take(),
        )
        self._clear()
        return passage


def _dense_values(gradient: tf.Tensor) -> tf.Tensor:
    """The gradient in float64; for IndexedSlices with repeated rows summed, as `tf.convert_to_tensor` does."""
    if not isinstance(gradient, tf.IndexedSlices):
        return tf.cast(gradient, tf.float64)
    rows, place = tf.unique(gradient.indices)
    return tf.math.unsorted_segment_sum(tf.cast(gradient.values, tf.float64), place, tf.size(rows))


def dependence_from_passages(
    low: float,
    high: float,
    at_low: Passage,
    at_high: Passage,
    scaled: bool | None,
    unscaled: bool | None,
    wrappers: int,
) -> ScaleDependenceFacts | None:
    """Exponents of every variable whose gradient was finite and not zero at both scales."""
    by_variable = exponents(low, high, at_low.arrived, at_high.arrived)
    if not by_variable:
        return None
    loss = exponents(low, high, {"": at_low.loss}, {"": at_high.loss})
    applied = exponents(low, high, at_low.applied, at_high.applied)
    return ScaleDependenceFacts(
        low,
        high,
        by_variable,
        scaled,
        unscaled,
        loss=loss[0][1] if loss else None,
        applied=sorted(e for _, e in applied)[len(applied) // 2] if applied else None,
        unscaled_calls=at_high.unscaled_calls,
        on_the_way=_on_the_way(high, at_high),
        wrappers=wrappers,
        loss_dtype=at_high.loss_dtype,
        loss_too_large=at_high.too_large,
        divided_by=_constant_divisor(low, high, at_low, at_high),
        divided_on_the_way=_is_divided(high, at_high),
        multiplied_by=tuple(sorted(at_low.factors & at_high.factors)),
    )


def exponents(low: float, high: float, at_low: Norms, at_high: Norms) -> tuple[tuple[str, float], ...]:
    """(variable, exponent) of each whose norm is finite and not 0 at both scales."""
    return tuple(
        (path, math.log2(at_high[path] / at_low[path]) / math.log2(high / low))
        for path in at_low
        if 0 < at_low[path] < math.inf and 0 < at_high.get(path, 0) < math.inf
    )


def _quotients(scale: float, passage: Passage, taped: Norms) -> list[float]:
    """For each variable: the gradient handed to the outermost optimizer divided by the tape's (`taped`), with calls of
    get_unscaled_gradients taken out."""
    known = [path for path in passage.applied if taped.get(path) and passage.applied[path]]
    unscaling = scale**passage.unscaled_calls
    return [passage.applied[path] / taped[path] * unscaling for path in known]


def _constant_divisor(low: float, high: float, at_low: Passage, at_high: Passage) -> float | None:
    quotients = _quotients(low, at_low, at_low.taped) + _quotients(high, at_high, at_high.taped)
    divisor = 1 / quotients[0] if quotients else 1.0
    is_same = all(abs(quotient * divisor - 1) < EQUAL for quotient in quotients)
    return divisor if is_same and abs(divisor - 1) > EQUAL else None


def _is_divided(scale: float, passage: Passage) -> bool:
    quotients = sorted(_quotients(scale, passage, passage.taped))
    return bool(quotients) and quotients[len(quotients) // 2] < scale**-0.5


def _on_the_way(scale: float, passage: Passage) -> str:
    """What happened between the tape and the outermost optimizer besides get_unscaled_gradients."""
    way = _way(scale, _quotients(scale, passage, passage.taped))
    if way != "changed" or not passage.added_up:
        return way
    way = _way(scale, _quotients(scale, passage, passage.added_up))
    return "added up" if way == "changed" else way


def _way(scale: float, quotients: list[float]) -> str:
    if all(abs(quotient - 1) < EQUAL for quotient in quotients):
        return ""
    return "divided" if all(abs(quotient * scale - 1) < EQUAL for quotient in quotients) else "changed"


def mean_of_passages(passages: list[Passage]) -> Passage:
    """The mean of several steps at one scale."""

    def mean(sides: list[Norms]) -> Norms:
        return {path: sum(norms.get(path, math.nan) for norms in sides) / len(sides) for path in sides[0]}

    return passages[-1]._replace(
        arrived=mean([p.arrived for p in passages]),
        applied=mean([p.applied for p in passages]),
        taped=mean([p.taped for p in passages]),
        loss=sum(p.loss for p in passages) / len(passages),
    )
