"""Hooks on the calls of layers: which layer raised, the inputs and outputs of each call.

`Layer.__call__` of a Keras is wrapped once; what is noted costs a dictionary look-up a call.
"""

from __future__ import annotations

import functools
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, NamedTuple, Protocol, Tuple, TypeVar

from mpdoctor.examiner.capture.layer_calls import LayerCalls, dtype_name, flat_tensors, is_symbolic
from mpdoctor.examiner.capture.origins import Origins
from mpdoctor.examiner.exceptions import chain_of, text_of_error
from mpdoctor.examiner.process.user_code import class_location, ran_own_code
from mpdoctor.facts.half_dtypes import HALF

if TYPE_CHECKING:
    import tensorflow as tf

    from mpdoctor.examiner.keras.adapter import KerasLayer, KerasModel


OWN, WHOLE = "own operations", "with all layers inside"  # what of a layer computes in float32, where that is tried
Arguments = Tuple[Tuple[object, ...], Dict[str, object]]


class FailedCall(NamedTuple):
    """A layer's call that raised.

    left_with
        The error as it left the outermost layer so far: each may make a new one of it.
    in_library
        Whether no line of the user's ran in it.
    float32_way
        What of the layer computed in float32 when the same call did not raise, OWN or WHOLE; "" where it raised as
        well, and None where that was not tried.
    """

    layer: KerasLayer
    left_with: BaseException
    given: Arguments
    in_library: bool
    float32_way: str | None = None


Call = TypeVar("Call")


class CallObserver(Protocol[Call]):
    """Interface of what observes each call of a layer, from its beginning to its end. `Call`: what it knows a call
    by."""

    def enter(
        self, layer: KerasLayer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[Call, tuple[object, ...], dict[str, object]]:
        """The observer's name for the call, and the arguments for the layer."""

    def leave(self, call: Call, outputs: object) -> object:
        """What the layer's caller gets."""

    def abandon(self, call: Call) -> None:
        """The layer of this call raised."""


class CallMender(Protocol):
    """Interface of what makes each call of a layer, in another dtype where that helps."""

    def call_layer(self, original: Callable[..., object], layer: KerasLayer, given: Arguments) -> object: ...

    def handed_on(self, layer: KerasLayer, outputs: object) -> object: ...


class LayerHooks:
    """What is known of the layers of one process.

    observer
        While it is set, each call goes through it: `call, args, kwargs = observer.enter(layer, args, kwargs)` before,
        `outputs = observer.leave(call, outputs)` after it, `observer.abandon(call)` where it raised.
    mender
        While it is set, each call is its own to make, `outputs = mender.call_layer(call, layer, given)`, and
        what comes of it is handed on by `mender.handed_on(layer, outputs)`.
    try_float32
        While it is set and no mender is, it is asked how a call that raised in a library's code alone runs in float32:
        `try_float32(call, layer, given)`, which gives a FailedCall's `float32_way`.
    origins
        Which line constructed each layer, under which policy.
    failed
        The call of the innermost layer that an error is leaving.
    after_outermost
        Called as `(layer, args, kwargs, outputs)` after each call of a layer that no other layer called.
    """

    def __init__(self) -> None:
        self.stack: list[KerasLayer] = []
        self.origins = Origins()
        self.observer: CallObserver[Any] | None = None
        self.after_outermost: list[Callable[[KerasLayer, tuple[object, ...], dict[str, object], object], None]] = []
        self.mender: CallMender | None = None
        self.try_float32: Callable[..., str | None] | None = None
        self.failed: FailedCall | None = None
        self.calls = LayerCalls()
        self._output_of: weakref.WeakKeyDictionary[KerasLayer, weakref.ReferenceType[KerasLayer]] = (
            weakref.WeakKeyDictionary()
        )
        self._producers: dict[int, tuple[tf.Tensor, KerasLayer]] = {}
        self._preparing: dict[str, None] = {}
        self._is_paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Calls of layers meanwhile are mpdoctor's own, of which nothing is noted."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def install(self, layer_class: type, global_policy: Callable[[], str]) -> None:
        """Wrap `__call__` and `__new__` of this Keras' Layer."""
        layer_class.__call__ = self._watched_call(layer_class.__call__)  # type: ignore[method-assign]
        self.origins.install(layer_class, global_policy)

    def _watched_call(self, original_call: Callable[..., object]) -> Callable[..., object]:
        layer_hooks = self

        @functools.wraps(original_call)  # its module tells autograph that this is none of the user's functions
        def __call__(layer: KerasLayer, *args: object, **kwargs: object) -> object:
            if layer_hooks._is_paused:
                return original_call(layer, *args, **kwargs)
            layer_hooks.failed = None
            layer_hooks.stack.append(layer)
            observer, call, mender = layer_hooks.observer, None, layer_hooks.mender
            if observer is not None:
                call, args, kwargs = observer.enter(layer, args, kwargs)
            try:
                if mender is None:
                    outputs = original_call(layer, *args, **kwargs)
                else:
                    outputs = mender.call_layer(original_call, layer, (args, kwargs))
            except BaseException as error:
                is_innermost = layer_hooks.failed is None
                layer_hooks.note_failure(layer, error, (args, kwargs))
                if is_innermost and mender is None:
                    layer_hooks._try_again(original_call, layer, (args, kwargs))
                if observer is not None:
                    observer.abandon(call)
                raise
            finally:
                layer_hooks.stack.pop()
            layer_hooks._note_output(layer, args, kwargs, outputs)
            if not layer_hooks.stack:
                for tell in layer_hooks.after_outermost:
                    tell(layer, args, kwargs, outputs)
            if observer is not None:
                outputs = observer.leave(call, outputs)
            return outputs if mender is None else mender.handed_on(layer, outputs)

        return __call__

    def output_layer(self, model: KerasModel) -> KerasLayer | None:
        """The layer whose output a subclassed model returned as its own; None where that is not known."""
        reference = self._output_of.get(model)
        return reference() if reference is not None else None

    def saw(self, dtypes: tuple[str, ...]) -> bool:
        """Whether any layer put out one of them."""
        return any(dtype in dtypes for call in self.calls.all() for dtype in call.output_dtypes)

    def layer_of_error(self, error: BaseException) -> KerasLayer | None:
        """The innermost layer whose call this error left, None where it came from elsewhere. Autograph makes a new
        error of the one that it passes on, and names the layer in its text."""
        if self.failed is None:
            return None
        layer, left_with = self.failed.layer, self.failed.left_with
        is_it = layer.name in text_of_error(error) or any(cause is left_with for cause in chain_of(error))
        return layer if is_it else None

    def note_failure(self, layer: KerasLayer, error: BaseException, given: Arguments) -> None:
        if self.failed is None:
            self.failed = FailedCall(layer, error, given, not ran_own_code(error))
        else:
            self.failed = self.failed._replace(left_with=error)

    def _try_again(self, call: Callable[..., object], layer: KerasLayer, given: Arguments) -> None:
        failed, tried = self.failed, self.try_float32
        if failed is None or not failed.in_library or tried is None:
            return
        self.try_float32 = None  # its own calls of layers may raise as well
        try:
            way = tried(call, layer, given)
        finally:
            self.try_float32 = tried
        self.failed = failed._replace(float32_way=way)

    def _note_output(
        self, layer: KerasLayer, args: tuple[object, ...], kwargs: dict[str, object], outputs: object
    ) -> None:
        tensors = flat_tensors(outputs)
        self.calls.note(layer, args, kwargs, tensors)
        if not self.stack:
            self._note_preparation(layer, tensors)
        self._note_whose_output(layer, tensors)

    def _note_preparation(self, layer: KerasLayer, outputs: list[tf.Tensor]) -> None:
        """Note a layer of Keras' own that gives 16-bit values, in a data pipeline or by itself. In Keras 3 such a layer
        casts its input before it is called as a layer, so the input's dtype is not seen here."""
        if not any(dtype_name(tensor) in HALF for tensor in outputs) or class_location(type(layer)) is not None:
            return
        graph = getattr(outputs[0], "graph", None)  # what runs eagerly has none
        in_pipeline = str(getattr(graph, "name", "")).startswith("Dataset_")
        by_itself = graph is None and not any(map(is_symbolic, outputs))
        if in_pipeline or by_itself:
            self._preparing.setdefault(type(layer).__name__)

    @property
    def preparing_layers(self) -> tuple[str, ...]:
        """The classes of those that made the data 16-bit outside of all models."""
        return tuple(self._preparing)

    def _note_whose_output(self, layer: KerasLayer, tensors: list[tf.Tensor]) -> None:
        """An outer call that returns the very tensor of an inner call has that inner layer as its output."""
        for tensor in tensors[:1]:
            _, producer = self._producers.setdefault(id(tensor), (tensor, layer))
            if producer is not layer:
                self._output_of[layer] = weakref.ref(producer)
        if not self.stack:
            self._producers.clear()
