"""What a trial observes of one eager step: layers called, output dtypes, the largest magnitude left in 16 bits.

It sees far less than a StepObserver and costs far less."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.capture.layer_calls import dtype_name
from mpdoctor.examiner.capture.open_call import OpenCall, OpenCalls
from mpdoctor.examiner.keras.private_state import casts_its_input
from mpdoctor.examiner.replay.magnitudes import array_from_tensor, is_floating
from mpdoctor.facts.half_dtypes import HALF

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasLayer


class SeenCall(OpenCall):
    """One call of a layer.

    dtypes
        Of its floating-point outputs.
    largest
        The largest magnitude that stays in 16 bits: of its 16-bit outputs, and of what other layers put out that it
        casts to 16 bits. inf where one is not finite.
    given_bad, gave_bad
        Whether something that went in, or came out, was not finite.
    """

    def __init__(self, layer: KerasLayer, parent: SeenCall | None) -> None:
        super().__init__(layer, parent)
        self.dtypes: tuple[str, ...] = ()
        self.largest = 0.0
        self.given_bad = self.gave_bad = False


class StepOutcome:
    """Watches the layers of one step while it is entered.

    calls
        In the order in which they began. Nothing is noted of a call that raised.
    outputs_in_float32
        Whether the outputs of a model that no other layer calls are cast to float32."""

    def __init__(self, keras: KerasAdapter, layer_hooks: LayerHooks, outputs_in_float32: bool = False) -> None:
        self._keras, self._layer_hooks = keras, layer_hooks
        self._outputs_in_float32 = outputs_in_float32
        self.calls: list[SeenCall] = []
        self._open = OpenCalls[SeenCall]()
        self._known: dict[int, tuple[tf.Tensor, float]] = {}  # what layers put out; held, so that no id comes twice

    def __enter__(self) -> StepOutcome:
        self._layer_hooks.observer = self
        return self

    def __exit__(self, *error: object) -> None:
        self._layer_hooks.observer = None
        self._known.clear()

    # --- called by LayerHooks -------------------------------------------------------------------------------------
    def enter(
        self, layer: KerasLayer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[SeenCall, tuple[object, ...], dict[str, object]]:
        call = SeenCall(layer, self._open.innermost)
        self.calls.append(call)
        self._open.begin(call)
        casts = layer.compute_dtype in HALF and casts_its_input(layer) and not isinstance(layer, self._keras.Model)
        for tensor in _floating((args, kwargs)):
            magnitude = self._magnitude(tensor)
            call.given_bad = call.given_bad or not math.isfinite(magnitude)
            if casts and id(tensor) in self._known:
                call.largest = _larger(call.largest, magnitude)
        return call, args, kwargs

    def leave(self, call: SeenCall, outputs: Any) -> Any:
        self.abandon(call)
        tensors = _floating(outputs)
        for tensor in tensors:
            magnitude = self._magnitude(tensor)
            self._known[id(tensor)] = (tensor, magnitude)
            call.gave_bad = call.gave_bad or not math.isfinite(magnitude)
            if dtype_name(tensor) in HALF:
                call.largest = _larger(call.largest, magnitude)
        call.dtypes = tuple(dtype_name(tensor) for tensor in tensors)
        if self._outputs_in_float32 and call.parent is None:
            return tf.nest.map_structure(_in_float32, outputs)
        return outputs

    def abandon(self, call: SeenCall) -> None:
        self._open.end(call)

    def _magnitude(self, tensor: tf.Tensor) -> float:
        known = self._known.get(id(tensor))
        return _magnitude(tensor) if known is None else known[1]


def _floating(structure: object) -> list[tf.Tensor]:
    """The floating-point tensors with values in it."""
    return [tensor for tensor in tf.nest.flatten(structure, expand_composites=True) if is_floating(tensor)]


def _magnitude(tensor: tf.Tensor) -> float:
    """The largest magnitude of the values; inf where one is inf or NaN."""
    values = np.abs(array_from_tensor(tensor))
    largest = float(values.max()) if values.size else 0.0  # NaN, where one is
    return largest if math.isfinite(largest) else math.inf


def _larger(one: float, other: float) -> float:
    return one if one >= other else other


def _in_float32(value: object) -> object:
    half = is_floating(value) and dtype_name(value) in HALF
    return tf.cast(value, tf.float32) if half else value
