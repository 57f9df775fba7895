"""Operations of layers in an eager step that make inf of finite float16 numbers, whatever becomes of it later, and
waves of angles whose phase 16 bits do not hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Callable, NamedTuple

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.process.patching import replace_for_now
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.examiner.replay.eager_operations import EagerOperations
from mpdoctor.examiner.replay.magnitudes import (
    FINITE,
    array_from_tensor,
    is_eager,
    is_floating,
    largest_in_float32,
    range_of_finite,
    state_of,
)
from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.training import OperationFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasLayer

MOST = 8  # places that are noted
WAVES = ("Sin", "Cos")
# From here on neighbouring numbers lie half a radian or more apart.
COARSE = {tf.float16: 512.0, tf.bfloat16: 64.0}
SHARE_COARSE = 0.05  # of the angles
INF = np.uint16(0x7C00)  # the bits of float16's inf; -inf, of which masks are made, has the sign's bit as well


class SeenOverflow(NamedTuple):
    """`path` of the layer as in the facts of the model."""

    layer: KerasLayer
    path: str
    operation: OperationFacts


class OverflowWatch:
    """Watches the way forward of steps while it is entered: one comparison of the bits of each float16 result."""

    def __init__(self, layer_hooks: LayerHooks) -> None:
        self._layer_hooks = layer_hooks
        self.found: list[SeenOverflow] = []
        self._seen: set[tuple[int, object]] = set()
        self._is_way_back = False
        self._operations = EagerOperations(self._see)
        self._release: Callable[[], None] = lambda: None

    def __enter__(self) -> OverflowWatch:
        self._release = replace_for_now(tf.GradientTape, "gradient", self._differentiate)
        self._operations.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._operations.__exit__()
        self._release()

    def _differentiate(
        self, original: Callable[..., object], tape: tf.GradientTape, *args: object, **kwargs: object
    ) -> object:
        self._is_way_back, before = True, self._is_way_back
        try:
            return original(tape, *args, **kwargs)
        finally:
            self._is_way_back = before

    def _see(self, name: str, inputs: list[tf.Tensor], attrs: tuple[object, ...], outputs: list[tf.Tensor]) -> None:
        if self._is_way_back or not self._layer_hooks.stack or len(self.found) >= MOST:
            return
        if name in WAVES:
            self._note_wave(name, inputs[0])
        elif any(map(_holds_inf, outputs)) and all(state_of(tensor) == FINITE for tensor in inputs):
            self._note(name, inputs, attrs, outputs)

    def _note(self, name: str, inputs: list[tf.Tensor], attrs: tuple[object, ...], outputs: list[tf.Tensor]) -> None:
        layer, place = self._layer_hooks.stack[-1], own_location()
        if (id(layer), place) in self._seen:
            return
        self._seen.add((id(layer), place))
        in_float32 = largest_in_float32(name, inputs, attrs, outputs)
        if in_float32 is None or not FLOAT16_LIMIT < in_float32 < math.inf:
            return
        floats = [array_from_tensor(tensor) for tensor in inputs if is_floating(tensor)]
        smallest, largest, holds_zero = range_of_finite(floats)
        operation = OperationFacts(
            name=name,
            where="layer",
            dtype="float16",
            result="inf",
            largest=largest,
            smallest=smallest,
            holds_zero=holds_zero,
            elements=max((values.size for values in floats), default=1),
            in_float32=in_float32,
            location=place,
        )
        self._keep(layer, operation)

    def _note_wave(self, name: str, angles: tf.Tensor) -> None:
        """Note a sine of angles that are too large for their dtype."""
        coarse = COARSE.get(angles.dtype) if is_floating(angles) else None
        layer, place = self._layer_hooks.stack[-1], own_location()
        if coarse is None or (id(layer), place) in self._seen:
            return
        sizes = np.abs(array_from_tensor(angles))
        if sizes.size and np.isfinite(sizes).all() and np.mean(sizes >= coarse) >= SHARE_COARSE:
            self._seen.add((id(layer), place))
            smallest, largest, holds_zero = range_of_finite([sizes])
            dtype = angles.dtype.name
            self._keep(
                layer,
                OperationFacts(
                    name=name,
                    where="layer",
                    dtype=dtype,
                    result="",
                    largest=largest,
                    smallest=smallest,
                    holds_zero=holds_zero,
                    elements=sizes.size,
                    location=place,
                ),
            )

    def _keep(self, layer: KerasLayer, operation: OperationFacts) -> None:
        names = [layer.name for layer in self._layer_hooks.stack[1:] or self._layer_hooks.stack]
        self.found.append(SeenOverflow(layer, "/".join(names), operation))


def _holds_inf(tensor: tf.Tensor) -> bool:
    if not is_eager(tensor) or tensor.dtype != tf.float16:
        return False
    return bool((np.ascontiguousarray(tensor.numpy()).view(np.uint16) == INF).any())
