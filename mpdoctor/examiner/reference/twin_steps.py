"""Runs one batch from one state twice, eagerly, in the model's own dtypes and all in float32, and compares the two."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Callable, Iterable, NamedTuple

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.keras.in_place import float32_in_place
from mpdoctor.examiner.reference.comparison import cosine, repeats, variables_compared
from mpdoctor.examiner.reference.observed_step import ObservedStep
from mpdoctor.examiner.reference.same_draws import same_draws
from mpdoctor.examiner.replay.magnitudes import array_from_tensor
from mpdoctor.examiner.replay.step_observer import Enough
from mpdoctor.examiner.replay.variable_snapshot import Snapshot, put_back
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.reference import FLUSHED_TOO_MUCH, ComparedStep, Moment

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasLayer, KerasVariable
    from mpdoctor.examiner.reference.comparison import Gradients
    from mpdoctor.examiner.replay.two_scales import GradientCatcher


class NotComparable(Exception):
    """There is no float32 twin of this step. The text is why, a clause."""


class KeptStep(NamedTuple):
    """A batch and the state that it is run from; `step` counts from 0 on, `scale` is the loss scale of then."""

    moment: Moment
    step: int
    scale: float | None
    repeat: Callable[[], object]
    state: Snapshot


class Run(NamedTuple):
    """The gradients of one run, unscaled, and what was seen in it."""

    gradients: Gradients
    seen: ObservedStep


class Twins(NamedTuple):
    """One batch in 16 bits and in float32.

    weights
        Paths of the weights in layers that compute in 16 bits: theirs are the gradients that float16 has to hold.
    largest
        Of these gradients and of those at the outputs of such layers, in float32, unscaled.
    """

    kept: KeptStep
    half: Run
    single: Run
    weights: frozenset[str]
    largest: float


class StepRunner:
    """Runs steps of one optimizer. The caller has them run eagerly and change nothing."""

    def __init__(
        self,
        keras: KerasAdapter,
        layer_hooks: LayerHooks,
        catcher: GradientCatcher,
        set_scale: Callable[[float], None] | None,
        variables: Iterable[KerasVariable],
        half: str,
    ) -> None:
        self._keras, self._layer_hooks, self._catcher, self._set_scale = keras, layer_hooks, catcher, set_scale
        self._own = {id(variable) for variable in variables}
        self._half = half
        self._layers: list[KerasLayer] = []  # all that a step calls, and those in them
        self._in_half: list[KerasLayer] = []

    def run(
        self,
        kept: KeptStep,
        layers: Iterable[KerasLayer] = (),
        scale: float | None = None,
        single: ObservedStep | None = None,
    ) -> Run:
        """Run a step with these layers in float32, at its own loss scale or this one, and compare it with `single`, the
        same step in float32. Raises NotComparable."""
        scale = kept.scale if scale is None else scale
        put_back(kept.state)
        if self._set_scale is not None and scale is not None:
            self._set_scale(scale)
        tf.random.set_seed(1)
        self._catcher.take()
        seen = ObservedStep(self._layer_hooks, single)
        with same_draws(self._half), float32_in_place(self._keras, layers), suppress(Enough), seen:
            try:
                kept.repeat()
            except Exception as raised:  # of the user's step: two dtypes meet, or it is fit for graphs only
                how = "eagerly with all layers in float32" if layers else "eagerly"
                raise NotComparable(f"the step cannot be repeated {how}: {first_line(raised)}") from raised
        caught = list(self._catcher.caught)
        self._catcher.take()
        return Run(self._gradients(caught, seen, scale), seen)

    def _gradients(
        self, caught: list[tuple[tf.Tensor, KerasVariable]], seen: ObservedStep, scale: float | None
    ) -> Gradients:
        """The gradients that arrived at the innermost optimizer. A wrapper keeps back those that are not finite: then
        those that the tape gave."""
        if caught:
            return self._by_path(caught, 1.0)
        return self._by_path([pair for pair in seen.taped if id(pair[1]) in self._own], scale or 1.0)

    def _by_path(self, pairs: list[tuple[tf.Tensor, KerasVariable]], scale: float) -> Gradients:
        """Two variables may have one path: the second is told with a mark. Of one variable's the last counts."""
        by_path: Gradients = {}
        owners: dict[str, int] = {}
        for gradient, variable in pairs:
            path = self._keras.path(variable)
            while owners.setdefault(path, id(variable)) != id(variable):
                path += "'"
            by_path[path] = _array(gradient) / np.float32(scale)
        return by_path

    # --- both -----------------------------------------------------------------------------------------------------
    def twins(self, kept: KeptStep, twice: bool) -> Twins:
        """`twice`: whether the one in float32 shall be run once more, to see that it gives the same. Raises
        NotComparable."""
        if not self._layers:
            self._layers = with_sublayers(self._keras, self.run(kept).seen.layers.values())
            self._in_half = [layer for layer in self._layers if layer.compute_dtype in HALF]
        single = self.run(kept, self._layers)
        self._refuse(single)
        if twice and not repeats(single.gradients, self.run(kept, self._layers).gradients):
            raise NotComparable("two runs of one batch in float32 differ: its random numbers cannot be repeated")
        half = self.run(kept, single=single.seen)
        return Twins(kept, half, single, self._weights_in_half(), self._largest(single, kept.scale))

    def _refuse(self, single: Run) -> None:
        for path, dtype in single.seen.still_in_half.items():
            raise NotComparable(f"`{path}` puts out {dtype} under any policy that is set later")
        for variable in self._variables_in_half():
            dtype = self._keras.dtype_of(variable)
            if dtype in HALF and id(variable) in self._own:
                raise NotComparable(f"the weight `{self._keras.path(variable)}` itself is {dtype}")
        if not single.gradients:
            raise NotComparable("no gradient arrived at the optimizer when the step was repeated")

    def _variables_in_half(self) -> list[KerasVariable]:
        return [variable for layer in self._in_half for variable in self._keras.own_variables(layer)]

    def _weights_in_half(self) -> frozenset[str]:
        return frozenset(map(self._keras.path, self._variables_in_half()))

    def _largest(self, single: Run, scale: float | None) -> float:
        paths = self._weights_in_half()
        weights = (np.max(np.abs(g)) for path, g in single.gradients.items() if path in paths and g.size)
        arrived = (single.seen.arrived.get(id(layer), 0.0) / (scale or 1.0) for layer in self._in_half)
        return max((float(number) for number in (*weights, *arrived)), default=0.0)


def with_sublayers(keras: KerasAdapter, layers: Iterable[KerasLayer]) -> list[KerasLayer]:
    """The layers with all their sublayers, each once."""
    by_id: dict[int, KerasLayer] = {}
    waiting = list(layers)
    while waiting:
        layer = waiting.pop()
        if id(layer) not in by_id:
            by_id[id(layer)] = layer
            waiting += keras.sublayers(layer)
    return list(by_id.values())


def compared_step(twins: Twins) -> ComparedStep:
    kept, half, single = twins.kept, twins.half, twins.single
    ranges = [seen for seen in half.seen.ranges.values() if seen.dtype in HALF]
    flushed = (half.seen.ranges[layer] for layer in half.seen.back if layer in half.seen.ranges)
    begins = next((seen.path for seen in flushed if (seen.flushed or 0.0) >= FLUSHED_TOO_MUCH), "")
    return ComparedStep(
        moment=kept.moment,
        step=kept.step,
        loss_scale=kept.scale,
        cosine=cosine(half.gradients, single.gradients),
        variables=variables_compared(half.gradients, single.gradients),
        layers=tuple(seen.facts() for seen in ranges),
        begins=begins,
    )


def _array(gradient: tf.Tensor) -> np.ndarray:
    dense = tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient
    return array_from_tensor(dense).astype(np.float32)
