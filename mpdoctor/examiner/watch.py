"""Layer calls, watched: which layer an exception came from, what dtype each layer really puts out, where it was made.

`Layer.__call__` and `Layer.__new__` of a Keras are wrapped once; what is noted costs a dictionary look-up a call.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from mpdoctor.examiner.ownership import own_location
from mpdoctor.facts.location import Location


class LayerWatch:
    """What is known of the layers of one process.

    observer
        While it is set, each call goes through it: `call, args, kwargs = observer.enter(layer, args, kwargs)` before,
        `outputs = observer.leave(call, outputs)` after it, `observer.abandon(call)` where it raised.
    """

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.observer: Any = None
        self._failed: tuple[Any, BaseException] | None = None  # the innermost layer that an error is leaving
        self._made: weakref.WeakKeyDictionary[Any, Location] = weakref.WeakKeyDictionary()
        self._dtypes: weakref.WeakKeyDictionary[Any, tuple[str, ...]] = weakref.WeakKeyDictionary()
        self._output_of: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._producers: dict[int, tuple[Any, Any]] = {}

    def install(self, layer_class: type) -> None:
        """Wrap `__call__` and `__new__` of this Keras' Layer."""
        original_call, original_new = layer_class.__call__, layer_class.__new__
        watch = self

        @functools.wraps(original_call)  # its module tells autograph that this is none of the user's functions
        def __call__(layer: Any, *args: Any, **kwargs: Any) -> Any:
            watch._failed = None
            watch.stack.append(layer)
            observer, call = watch.observer, None
            if observer is not None:
                call, args, kwargs = observer.enter(layer, args, kwargs)
            try:
                outputs = original_call(layer, *args, **kwargs)
            except BaseException as error:
                watch._note_failure(layer, error)
                if observer is not None:
                    observer.abandon(call)
                raise
            finally:
                watch.stack.pop()
            watch._note_output(layer, outputs)
            return outputs if observer is None else observer.leave(call, outputs)

        @functools.wraps(original_new)
        def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
            layer = original_new(cls, *args, **kwargs)
            place = own_location(sys._getframe(1))
            if place is not None:
                watch._made.setdefault(layer, place)
            return layer

        layer_class.__call__ = __call__  # type: ignore[method-assign]
        layer_class.__new__ = __new__  # type: ignore[method-assign, assignment]

    def made_at(self, layer: Any) -> Location | None:
        return self._made.get(layer)

    def output_dtypes(self, layer: Any) -> tuple[str, ...]:
        return self._dtypes.get(layer, ())

    def output_layer(self, model: Any) -> Any:
        """The layer whose output a subclassed model returned as its own, None where nobody knows."""
        reference = self._output_of.get(model)
        return reference() if reference is not None else None

    def layer_of_error(self, error: BaseException) -> Any:
        """The innermost layer whose call this error left, None where it came from elsewhere. Autograph makes a new
        error of the one that it passes on, and names the layer in its text."""
        if self._failed is None:
            return None
        layer, left_with = self._failed
        chain = {id(error), id(error.__cause__), id(error.__context__)}
        return layer if id(left_with) in chain or layer.name in str(error) else None

    def _note_failure(self, layer: Any, error: BaseException) -> None:
        inner = layer if self._failed is None else self._failed[0]
        self._failed = (inner, error)

    def _note_output(self, layer: Any, outputs: Any) -> None:
        tensors = flat_tensors(outputs)
        if layer not in self._dtypes:
            self._dtypes[layer] = tuple(dtype_name(tensor) for tensor in tensors)
        self._note_whose_output(layer, tensors)

    def _note_whose_output(self, layer: Any, tensors: list[Any]) -> None:
        """An outer call that returns the very tensor of an inner call has that inner layer as its output."""
        for tensor in tensors[:1]:
            _, producer = self._producers.setdefault(id(tensor), (tensor, layer))
            if producer is not layer:
                self._output_of[layer] = weakref.ref(producer)
        if not self.stack:
            self._producers.clear()


def flat_tensors(structure: Any) -> list[Any]:
    """Every tensor in nested lists, tuples and dicts, in order."""
    if isinstance(structure, dict):
        return [t for key in structure for t in flat_tensors(structure[key])]
    if isinstance(structure, (list, tuple)):
        return [t for item in structure for t in flat_tensors(item)]
    return [structure] if hasattr(structure, "dtype") and hasattr(structure, "shape") else []


def dtype_name(tensor: Any) -> str:
    dtype = tensor.dtype
    return getattr(dtype, "name", None) or str(dtype)
