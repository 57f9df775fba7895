"""Observes one eager step for `--reference`: layers' outputs, the gradients at them, the gradients of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.capture.layer_calls import dtype_name
from mpdoctor.examiner.capture.open_call import OpenCall, OpenCalls
from mpdoctor.examiner.process.patching import replace_for_now
from mpdoctor.examiner.reference.ranges import RangeOfLayer, sample_of
from mpdoctor.examiner.replay.magnitudes import array_from_tensor, is_floating
from mpdoctor.examiner.replay.marked_tensors import mapped, with_gradient_seen
from mpdoctor.facts.half_dtypes import HALF

if TYPE_CHECKING:
    from typing import Dict, Tuple

    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasLayer, KerasVariable

    Arrival = Tuple[int, int, int]  # (layer, its call in the step, its output)
    Arrays = Dict[Arrival, np.ndarray]


class NumberedCall(OpenCall):
    """`number` counts the calls of this layer in the step."""

    def __init__(self, layer: KerasLayer, parent: OpenCall | None, number: int) -> None:
        super().__init__(layer, parent)
        self.number = number


class ObservedStep:
    """Watches the layers and tapes of one step while it is entered.

    single
        The same step seen in float32, to compare with. None of a run that is to note what follows:
    nonzero
        Where the gradients that arrive at layers' outputs are not 0, as bits.
    samples
        Of what layers put out.
    layers
        Those that were called, each once, in the order of their first calls.
    ranges
        By layer, of what they put out.
    taped
        Of the last tape that differentiated by variables: (gradient, variable), the loss scaled.
    back
        Layers at whose outputs gradients arrived, in the order of the way back.
    arrived
        By layer, the largest magnitude of a gradient that arrived at its output; of a run that compares with none.
    """

    def __init__(self, layer_hooks: LayerHooks, single: ObservedStep | None = None) -> None:
        self._layer_hooks, self._single = layer_hooks, single
        self.nonzero: Arrays = {}
        self.samples: Arrays = {}
        self.layers: dict[int, KerasLayer] = {}
        self.ranges: dict[int, RangeOfLayer] = {}
        self.taped: list[tuple[tf.Tensor, KerasVariable]] = []
        self.back: dict[int, str] = {}
        self.arrived: dict[int, float] = {}
        self._open = OpenCalls[NumberedCall]()
        self._count: dict[int, int] = {}
        self._release: Callable[[], object] = lambda: None

    def __enter__(self) -> ObservedStep:
        self._layer_hooks.observer = self
        self._release = replace_for_now(tf.GradientTape, "gradient", self._differentiate)
        return self

    def __exit__(self, *error: object) -> None:
        self._release()
        self._layer_hooks.observer = None

    # --- called by LayerHooks -------------------------------------------------------------------------------------
    def enter(
        self, layer: KerasLayer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[NumberedCall, tuple[object, ...], dict[str, object]]:
        number = self._count[id(layer)] = self._count.get(id(layer), 0) + 1
        call = NumberedCall(layer, self._open.innermost, number)
        self.layers.setdefault(id(layer), layer)
        self._open.begin(call)
        return call, args, kwargs

    def leave(self, call: NumberedCall, outputs: object) -> object:
        self.abandon(call)
        count = [0]

        def noted(value: object) -> object:
            if not is_floating(value):
                return value
            of_layer = self.ranges.setdefault(id(call.layer), RangeOfLayer(call.path, dtype_name(value)))
            values = array_from_tensor(value)
            of_layer.note_output(values)
            count[0] += 1
            self._compare_output(of_layer, values, (id(call.layer), call.number, count[0]))
            return self._marked(value, call, count[0])

        return mapped(noted, outputs)

    def _compare_output(self, of_layer: RangeOfLayer, values: np.ndarray, arrival: Arrival) -> None:
        if self._single is None:
            self.samples[arrival] = sample_of(values)
        elif arrival in self._single.samples:
            of_layer.note_difference(sample_of(values), self._single.samples[arrival])

    def abandon(self, call: NumberedCall) -> None:
        self._open.end(call)

    # --- the way back ---------------------------------------------------------------------------------------------
    def _marked(self, tensor: tf.Tensor, call: NumberedCall, place: int) -> tf.Tensor:
        """The tensor, marked so that the gradient that arrives at it is observed."""
        arrival = (id(call.layer), call.number, place)

        return with_gradient_seen(tensor, lambda gradient: self._came_back(gradient, arrival, call))

    def _came_back(self, gradient: tf.Tensor, arrival: Arrival, call: NumberedCall) -> tf.Tensor:
        values = tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient
        if not is_floating(values):
            return gradient
        numbers = array_from_tensor(values)
        self.back.setdefault(arrival[0], call.path)
        if self._single is None:
            self.nonzero[arrival] = np.packbits(numbers != 0)
            largest = float(np.max(np.abs(numbers))) if numbers.size else 0.0
            self.arrived[arrival[0]] = max(self.arrived.get(arrival[0], 0.0), largest)
        elif arrival in self._single.nonzero:
            kept = np.unpackbits(self._single.nonzero[arrival])[: numbers.size].astype(bool)
            flushed = np.count_nonzero(kept & (numbers.ravel() == 0))
            self.ranges[arrival[0]].note_gradient(int(flushed), int(np.count_nonzero(kept)))
        return gradient

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
        variables = tf.nest.flatten(sources)
        if all(hasattr(variable, "assign") for variable in variables):
            self.taped += [(g, v) for g, v in zip(tf.nest.flatten(gradients), variables) if g is not None]
        return gradients

    # --- afterwards -----------------------------------------------------------------------------------------------
    @property
    def still_in_half(self) -> dict[str, str]:
        """Layers that put out 16 bits: (path, dtype)."""
        return {seen.path: seen.dtype for seen in self.ranges.values() if seen.dtype in HALF}
