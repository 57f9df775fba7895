"""A step that runs eagerly, with its layers, its operations and its gradients observed. Costs nothing on steps that
don't need it.

Every floating-point tensor that goes into a layer or comes out of it passes through an identity whose gradient tells
that the way back has come there: so a gradient is known to belong to this layer call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, NamedTuple

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.capture.layer_hooks import LayerHooks
from mpdoctor.examiner.capture.open_call import OpenCalls
from mpdoctor.examiner.keras.step_record import values_of_gradient
from mpdoctor.examiner.process.patching import replace_for_now
from mpdoctor.examiner.replay.magnitudes import is_eager, is_floating, state_of
from mpdoctor.examiner.replay.marked_tensors import mapped, with_gradient_seen
from mpdoctor.examiner.replay.observed_calls import ObservedCall, tensor_from_values
from mpdoctor.examiner.replay.op_trace import OperationTrace
from mpdoctor.facts.training import TensorFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasLayer, KerasOptimizer, KerasVariable


COMPOSITE = (tf.RaggedTensor, tf.SparseTensor)


class BackFrame(NamedTuple):
    """A gradient that has come to the output of a layer call, after so many operations."""

    after: int
    call: ObservedCall
    gradient: TensorFacts


class Enough(BaseException):
    """Ends the repetition of a call that holds many steps. No error: no `except Exception` of the user's takes it."""


class StepObserver:
    """Watches eager steps while it is entered; what it has seen is of the steps since the last `clear()`.

    `stops`: a step that fails ends the call that it belongs to, with Enough; one that does not is forgotten when the
    next one begins."""

    def __init__(
        self, keras: KerasAdapter, layer_hooks: LayerHooks, optimizer: KerasOptimizer | None, stops: bool = False
    ) -> None:
        self.trace = OperationTrace()
        self._optimizer, self._stops = optimizer, stops
        self.keras, self.layer_hooks = keras, layer_hooks
        self._release: list[Callable[[], None]] = []
        self.clear()

    def clear(self) -> None:
        self.trace.clear()
        self.calls: list[ObservedCall] = []
        self.frames: list[TensorFacts] = []
        self.way_back: list[BackFrame] = []
        # that arrived at the optimizer, with their variables
        self.gradients: list[tuple[tf.Tensor, KerasVariable]] = []
        self._taped: dict[int, tf.Tensor] = {}  # by variable: what the last tape gave for it
        self._targets: list[tuple[tf.Tensor, set[int]]] = []  # what a tape differentiated, and for which variables
        self.had_bad_weight = False  # before the optimizer moved it
        self._open = OpenCalls[ObservedCall]()
        self._count: dict[int, int] = {}
        self._applied = False

    def __enter__(self) -> StepObserver:
        keras = self.keras
        self.layer_hooks.observer = self
        self._release = [
            replace_for_now(tf.GradientTape, "gradient", self._differentiate),
            *(replace_for_now(cls, name, self._scale) for cls, name in keras.scaling_methods()),
            *(replace_for_now(cls, name, self._apply) for cls, name in keras.apply_methods()),
            *(replace_for_now(cls, "__call__", self._call_function) for cls in keras.function_classes()),
        ]
        self.trace.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.trace.__exit__()
        self.layer_hooks.observer = None
        while self._release:
            self._release.pop()()

    # --- layers ---------------------------------------------------------------------------------------------------
    def enter(
        self, layer: KerasLayer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[ObservedCall, tuple[object, ...], dict[str, object]]:
        if self._applied and self._stops and self._open.innermost is None:
            self.clear()
        number = self._count[id(layer)] = self._count.get(id(layer), 0) + 1
        parent = self._open.innermost
        call = ObservedCall(layer, parent, number)
        args, kwargs = mapped(_tensor, (args, kwargs))
        if parent is None:
            self.trace.given(_flat((args, kwargs)))  # and what the marks make of it, which hand it on
        args, kwargs = mapped(lambda tensor: self._marked(tensor, parent, leaving=False), (args, kwargs))
        self._open.begin(call)
        self.trace.layer, self.trace.where = call, ""
        self.calls.append(call)
        return call, args, kwargs

    def leave(self, call: ObservedCall, outputs: object) -> object:
        self.abandon(call)
        marked = mapped(lambda output: self._marked(output, call, leaving=True), outputs)
        for tensor in _flat(outputs):
            if is_floating(tensor) and (call.output is None or not call.output.nonfinite):
                call.output = tensor_from_values(self.layer_hooks, call, tensor)
        if call.output is not None:
            self.frames.append(call.output)
        return marked

    def abandon(self, call: ObservedCall) -> None:
        """The call raised, or is over."""
        self._open.end(call)
        self.trace.layer = self._open.innermost

    def _call_function(
        self, original: Callable[..., object], function: KerasLayer, *args: object, **kwargs: object
    ) -> object:
        """A function between the layers of a functional model, where those are no layers: observed as one."""
        if self._open.innermost is None or not self.keras.is_plain_function(function):
            return original(function, *args, **kwargs)
        call, args, kwargs = self.enter(function, args, kwargs)
        try:
            outputs = original(function, *args, **kwargs)
        except BaseException:
            self.abandon(call)
            raise
        return self.leave(call, outputs)

    def _marked(self, tensor: tf.Tensor, owner: ObservedCall | None, *, leaving: bool) -> tf.Tensor:
        """The tensor, marked so that its gradient is observed; from there on the gradient belongs to the owner."""
        if not is_floating(tensor):
            return tensor

        return with_gradient_seen(tensor, lambda gradient: self._came_back(gradient, owner, leaving))

    def _came_back(self, gradient: tf.Tensor, owner: ObservedCall | None, leaving: bool) -> tf.Tensor:
        if isinstance(gradient, tf.IndexedSlices):
            gradient = tf.convert_to_tensor(gradient)
        if not is_floating(gradient):
            return gradient
        if leaving and owner is not None:
            self.way_back.append(
                BackFrame(self.trace.count, owner, tensor_from_values(self.layer_hooks, owner, gradient))
            )
        passed = tf.raw_ops.Identity(input=gradient)
        self.trace.label_gradient(passed, owner)
        return passed

    # --- the training code ------------------------------------------------------------------------------------------
    def _scale(
        self, original: Callable[..., object], optimizer: KerasOptimizer, *args: object, **kwargs: object
    ) -> object:
        before, self.trace.where = self.trace.where, "scaling"
        try:
            return original(optimizer, *args, **kwargs)
        finally:
            self.trace.where = before

    def _differentiate(
        self,
        original: Callable[..., object],
        tape: tf.GradientTape,
        target: tf.Tensor,
        sources: object,
        *args: object,
        **kwargs: object,
    ) -> object:
        variables = [id(source) for source in tf.nest.flatten(sources)]
        self._targets += [(tensor, set(variables)) for tensor in tf.nest.flatten(target) if is_floating(tensor)]
        self.trace.back = True
        try:
            gradients = original(tape, target, sources, *args, **kwargs)
        finally:
            self.trace.back, self.trace.where = False, "loop"
        self._taped.update(
            (variable, values_of_gradient(gradient))
            for variable, gradient in zip(variables, tf.nest.flatten(gradients))
        )
        return gradients

    def _apply(
        self, original: Callable[..., object], optimizer: KerasOptimizer, *args: object, **kwargs: object
    ) -> object:
        if optimizer is self._optimizer:
            (args, kwargs), gradients, variables = self.keras.gradients_and_variables(optimizer, args, kwargs)
            pairs = [(values_of_gradient(gradient), variable) for gradient, variable in zip(gradients, variables)]
            self.gradients += [(gradient, variable) for gradient, variable in pairs if is_floating(gradient)]
            self.had_bad_weight = any(_is_bad_variable(variable) for variable in variables)
            self._applied = True
            if self._stops and self.bad:
                raise Enough
        return original(optimizer, *args, **kwargs)

    # --- afterwards -------------------------------------------------------------------------------------------------
    @property
    def first_bad_gradient(self) -> tuple[tf.Tensor, KerasVariable] | None:
        """The first gradient of the backward pass that was not finite, with its variable: as the tape gave it, if it
        was not finite then; later all gradients were unscaled or clipped, in the order of the variables."""
        taped = [(self._taped.get(id(variable)), variable) for _, variable in self.bad_gradients]
        broken = [pair for pair in taped if is_floating(pair[0]) and self.trace.is_bad(pair[0])]
        return min(broken or self.bad_gradients, key=lambda pair: self._made_at(pair[0]), default=None)

    def _made_at(self, gradient: tf.Tensor) -> int:
        maker = self.trace.maker(gradient)
        return 0 if maker is None else maker.number

    @property
    def bad_gradients(self) -> list[tuple[tf.Tensor, KerasVariable]]:
        return [(gradient, variable) for gradient, variable in self.gradients if self.trace.is_bad(gradient)]

    @property
    def bad(self) -> list[tf.Tensor]:
        """What was not finite for this optimizer's variables: the loss, else their gradients."""
        variables = {id(variable) for _, variable in self.gradients}
        own = [target for target, sources in self._targets if sources & variables]
        losses = own or [target for target, _ in self._targets]
        return [t for t in losses if self.trace.is_bad(t)] or [gradient for gradient, _ in self.bad_gradients]


def _tensor(value: object) -> tf.Tensor:
    """A layer makes a tensor of an array, of its own dtype at once: too large a number would come from nowhere."""
    is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return tf.convert_to_tensor(value) if is_array else value


def _flat(structure: object) -> list[tf.Tensor]:
    tensors: list[tf.Tensor] = []
    mapped(lambda value: tensors.extend(_tensors_in(value)), structure)
    return tensors


def _tensors_in(value: object) -> list[tf.Tensor]:
    """The plain tensors of a ragged or sparse one, a plain tensor itself; [] for anything else."""
    parts = tf.nest.flatten(value, expand_composites=True) if isinstance(value, COMPOSITE) else [value]
    return [part for part in parts if is_eager(part)]


def _is_bad_variable(variable: KerasVariable) -> bool:
    return bool(state_of(tf.convert_to_tensor(variable)))
