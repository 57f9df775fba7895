"""The dtypes and shapes of each layer's inputs and outputs, as its calls had them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Iterator, NamedTuple, Optional, Tuple

from mpdoctor.examiner.keras.private_state import mask_of

if TYPE_CHECKING:
    import tensorflow as tf

    from mpdoctor.examiner.keras.adapter import KerasLayer


Shape = Tuple[Optional[int], ...]


class CallSignature(NamedTuple):
    """The dtypes and shapes with which a layer was called, and with which it answered.

    input_dtypes
        Of every tensor among its arguments, before the layer cast anything.
    mask_steps
        How many steps the mask that it was given counts; None without a mask, or where nobody knows.
    is_real
        False for Keras' symbolic tensors, whose dtype may be what the layer promises rather than what it does.
    """

    input_dtypes: tuple[str, ...]
    output_dtypes: tuple[str, ...]
    output_shape: Shape
    mask_steps: int | None
    is_real: bool


NO_CALL = CallSignature((), (), (), None, is_real=False)


class LayerCalls:
    """The signature of each layer's first call with real tensors; until there is one, of the first with symbolic."""

    def __init__(self) -> None:
        self._calls: weakref.WeakKeyDictionary[KerasLayer, CallSignature] = weakref.WeakKeyDictionary()
        self._batches: weakref.WeakKeyDictionary[KerasLayer, tuple[int, int]] = weakref.WeakKeyDictionary()

    def of(self, layer: KerasLayer) -> CallSignature:
        return self._calls.get(layer, NO_CALL)

    def all(self) -> Iterator[CallSignature]:
        return iter(list(self._calls.values()))

    def batches(self) -> list[tuple[KerasLayer, int, int]]:
        """(layer, samples given, samples returned) of those whose last call with known sizes changed their number, an
        inner layer before those around it."""
        return [(layer, *sizes) for layer, sizes in list(self._batches.items()) if sizes[0] != sizes[1]]

    def _note_batch(self, layer: KerasLayer, inputs: list[tf.Tensor], outputs: list[tf.Tensor]) -> None:
        if len(inputs) == 1 and len(outputs) == 1:
            given, returned = _shape(inputs[0])[:1], _shape(outputs[0])[:1]
            if given and returned and given[0] is not None and returned[0] is not None:
                self._batches[layer] = given[0], returned[0]

    def note(
        self, layer: KerasLayer, args: tuple[object, ...], kwargs: dict[str, object], outputs: list[tf.Tensor]
    ) -> None:
        """`outputs` are the tensors that the call returned."""
        inputs = flat_tensors([*args, *kwargs.values()])
        self._note_batch(layer, [tensor for tensor in inputs if dtype_name(tensor) != "bool"], outputs)
        known = self._calls.get(layer)
        if known is not None and (known.is_real or any(map(is_symbolic, outputs))):
            return
        self._calls[layer] = CallSignature(
            tuple(dtype_name(tensor) for tensor in inputs),
            tuple(dtype_name(tensor) for tensor in outputs),
            _shape(outputs[0]) if outputs else (),
            _mask_steps(args, kwargs),
            not any(map(is_symbolic, [*inputs, *outputs])),
        )


def is_symbolic(tensor: tf.Tensor) -> bool:
    """Whether it is one of Keras' own stand-ins for tensors, SparseKerasTensor and RaggedKerasTensor among them."""
    return type(tensor).__name__.endswith("KerasTensor")


def flat_tensors(structure: object) -> list[tf.Tensor]:
    """Every tensor in nested lists, tuples and dicts, in order."""
    if isinstance(structure, dict):
        return [t for key in structure for t in flat_tensors(structure[key])]
    if isinstance(structure, (list, tuple)):
        return [t for item in structure for t in flat_tensors(item)]
    return [structure] if hasattr(structure, "dtype") and hasattr(structure, "shape") else []


def dtype_name(tensor: tf.Tensor) -> str:
    dtype = tensor.dtype
    return getattr(dtype, "name", None) or str(dtype)


def _mask_steps(args: tuple[object, ...], kwargs: dict[str, object]) -> int | None:
    mask = kwargs.get("mask")
    if mask is None and args:
        mask = mask_of(args[0])
    shape = () if mask is None else _shape(mask)
    return shape[1] if len(shape) > 1 else None


def _shape(tensor: tf.Tensor) -> Shape:
    shape = getattr(tensor, "shape", ())
    if getattr(shape, "rank", 0) is None:
        return ()
    return tuple(None if size is None else int(size) for size in shape)
