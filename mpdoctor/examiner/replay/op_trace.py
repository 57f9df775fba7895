"""Every operation of TensorFlow in a step that runs eagerly, watched: which of them made the first number that was not
finite, and what went into it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.examiner.replay.backward_pass import BackwardPass, Use
from mpdoctor.examiner.replay.eager_operations import EagerOperations
from mpdoctor.examiner.replay.magnitudes import (
    FINITE,
    NAN,
    array_from_tensor,
    is_floating,
    is_masked,
    is_number,
    largest_in_float32,
    range_of_finite,
    state_of,
)
from mpdoctor.examiner.replay.named_operands import constant_beyond, named_operands
from mpdoctor.facts.location import Location
from mpdoctor.facts.training import OperationFacts
from mpdoctor.knowledge.op_lists import READING_WEIGHTS

if TYPE_CHECKING:
    from mpdoctor.examiner.replay.observed_calls import ObservedCall


# Reading one of these depends on the weights, whatever else goes in.
# Operations that hand numbers on as they are: no reader would call them the place where something happens.
SOFTMAX = ("Softmax", "LogSoftmax")
SHAPES = frozenset(("Identity", "Reshape", "ExpandDims", "Squeeze", "StridedSlice", "ConcatV2", "Pack", "Transpose"))
HANDS_ON = frozenset(("Cast", "Identity", "Shape", "Reshape", "StopGradient", "Pack", "ConcatV2", "ZerosLike"))


class Made(NamedTuple):
    """A tensor that is not finite. `maker`: the number of the operation that made it, None where nobody did: data."""

    state: int
    maker: int | None


class Operation:
    """One operation that put out something not finite. `layer` is the layer call that it ran in, or whose way back it
    is part of; `sources` the tensors not finite that went in."""

    def __init__(
        self, number: int, layer: ObservedCall | None, back: bool, sources: list[int], facts: OperationFacts
    ) -> None:
        self.number, self.layer, self.back, self.sources, self.facts = number, layer, back, sources, facts


class OperationTrace:
    """Watches operations while it is entered.

    `layer` is the layer call that runs now and `back` whether gradients are being computed: the observer of the layers
    sets them.
    """

    def __init__(self) -> None:
        self.layer: ObservedCall | None = None
        self.back = False
        self.where = ""  # what the training code does now, where it is no layer: "scaling", "loop"
        self.failure: Exception | None = None
        self._operations_run = EagerOperations(self._see)
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self._made: dict[int, Made] = {}  # by tensor
        self._known: set[int] = set()
        self._weighty: set[int] = set()
        self.inputs: set[int] = set()  # tensors that the outermost layers were given, in whatever shape
        self._operations: dict[int, Operation] = {}
        self._backward = BackwardPass()

    def __enter__(self) -> OperationTrace:
        self._operations_run.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._operations_run.__exit__()

    def label_gradient(self, gradient: tf.Tensor, layer: ObservedCall | None) -> None:
        """From now on the gradient belongs to this layer call, or with None to no call."""
        if layer is None:
            self._backward.labels.pop(gradient._id, None)
        else:
            self._backward.labels[gradient._id] = layer

    def given(self, tensors: list[tf.Tensor]) -> None:
        """Note the inputs of an outermost layer as data, without those that another model computed of its weights."""
        self.inputs.update(tensor._id for tensor in tensors if tensor._id not in self._weighty)

    # --- every operation ------------------------------------------------------------------------------------------
    def _see(self, name: str, inputs: list[tf.Tensor], attrs: tuple[object, ...], outputs: list[tf.Tensor]) -> None:
        if self.failure is not None:
            return
        try:
            self._note(name, inputs, attrs, outputs)
        except Exception as error:  # ours: it must not end a step of the user's
            self.failure = error

    def _note(self, name: str, inputs: list[tf.Tensor], attrs: tuple[object, ...], outputs: list[tf.Tensor]) -> None:
        self.count += 1
        layer, line = self.layer, None
        if self.back:
            layer, line = self._backward.origin(name, inputs, outputs)
        elif name not in HANDS_ON:
            line = own_location()
            self._backward.note_forward(Use(self.count, name, layer, line), inputs, outputs)
        self._note_origin(name, inputs, outputs)
        states = [state_of(t) for t in outputs]
        self._known.update(t._id for t in outputs)
        if not any(states):
            return
        sources = [t._id for t in _unspoilt(name, inputs, attrs) if self._state(t)]
        line = line if self.back else own_location()
        facts = self._facts(name, inputs, attrs, outputs, max(states), sources, line)
        self._operations[self.count] = Operation(self.count, layer, self.back, sources, facts)
        for tensor, state in zip(outputs, states):
            if state:
                self._made[tensor._id] = Made(state, self.count)

    def _note_origin(self, name: str, inputs: list[tf.Tensor], outputs: list[tf.Tensor]) -> None:
        """Note which results are computed from weights, and which are the model's inputs in another shape or dtype."""
        if name in READING_WEIGHTS or any(t._id in self._weighty for t in inputs):
            self._weighty.update(t._id for t in outputs)
        elif (name in SHAPES or name == "Cast") and any(t._id in self.inputs for t in inputs):
            self.inputs.update(t._id for t in outputs)

    def _state(self, tensor: tf.Tensor) -> int:
        """The state of an input, known from the operation that made it, else looked at once."""
        if tensor._id not in self._known:
            self._known.add(tensor._id)
            state = state_of(tensor)
            if state:
                self._made[tensor._id] = Made(state, None)
        made = self._made.get(tensor._id)
        return FINITE if made is None else made.state

    def _facts(
        self,
        name: str,
        inputs: list[tf.Tensor],
        attrs: tuple[object, ...],
        outputs: list[tf.Tensor],
        state: int,
        sources: list[int],
        line: Location | None,
    ) -> OperationFacts:
        kinds = is_number if name == "Cast" else is_floating
        floats = [array_from_tensor(t) for t in _unspoilt(name, inputs, attrs) if kinds(t)]
        smallest, largest, holds_zero = range_of_finite(floats)
        dtype, given = next((t.dtype.name for t in outputs if is_floating(t)), ""), self._given(sources, inputs)
        return OperationFacts(
            name=name,
            where="gradient" if self.back else "layer" if self.layer is not None else self.where or "loss",
            dtype=dtype,
            result=_result(outputs, state),
            largest=largest,
            smallest=smallest,
            holds_zero=holds_zero,
            elements=max((values.size for values in floats), default=1),
            in_float32=None if sources else largest_in_float32(name, inputs, attrs, outputs),
            given=given,
            constant=constant_beyond(line, dtype) if given == "constant" and not self.back else None,
            from_data=name == "Cast" and inputs[0]._id in self.inputs,
            masked=is_masked(floats),
            location=line,
            operands=() if self.back or sources else named_operands(inputs, line),
            averaged=int(tf.size(inputs[0])) // max(int(tf.size(outputs[0])), 1) if name == "Mean" else 0,
        )

    def _given(self, sources: list[int], inputs: list[tf.Tensor]) -> str:
        """What a value that is not finite is, if no operation made it: the model's inputs are data, and so is a vector
        in the training code, unless it is of -inf, as masks are made. In a layer it is a constant."""
        given = [t for t in inputs if t._id in sources and self._made[t._id].maker is None]
        if not given or len(given) < len(sources):
            return ""
        outside = self.layer is None
        vector = outside and any(int(tf.size(t)) > 1 and not _is_minus_infinity(t) for t in given)
        return "data" if vector or any(t._id in self.inputs for t in given) else "constant"

    # --- afterwards -----------------------------------------------------------------------------------------------
    def is_bad(self, tensor: tf.Tensor) -> bool:
        return bool(self._state(tensor))

    def maker(self, tensor: tf.Tensor) -> Operation | None:
        """The operation whose result this tensor is, where it is not finite."""
        made = self._made.get(tensor._id)
        return None if made is None or made.maker is None else self._operations.get(made.maker)

    def first_of(self, layer: ObservedCall) -> Operation | None:
        """The first operation of the way forward in this layer call, or in one inside it, that made something not
        finite."""
        return next(
            (
                operation
                for operation in self._operations.values()
                if not operation.back and _is_inside(operation.layer, layer)
            ),
            None,
        )

    def first_overflow(self) -> OperationFacts | None:
        """The first operation of the way forward that computed inf where float32 gives a number. Masks are made of
        -inf, and of what is cast."""
        forward = (operation.facts for operation in self._operations.values() if not operation.back)
        computed = (facts for facts in forward if facts.result == "inf" and facts.name != "Cast")
        return next((facts for facts in computed if math.isfinite(facts.in_float32 or math.inf)), None)

    def root(self, tensor: tf.Tensor) -> Operation | None:
        """The operation that made the first number not finite of all that this tensor was made from.

        None where no operation touched it. A row that a mask leaves nothing of is the softmax's NaN, not the mask's."""
        self._state(tensor)
        waiting, seen, roots = [tensor._id], set(), []
        while waiting:
            made = self._made.get(waiting.pop())
            operation = None if made is None or made.maker is None else self._operations.get(made.maker)
            if operation is None or operation.number in seen:
                continue
            seen.add(operation.number)
            facts = operation.facts
            is_nothing_left = facts.result == "nan" and facts.masked and facts.name in SOFTMAX
            if not operation.sources or facts.given or is_nothing_left:
                roots.append(operation)
            else:
                waiting += self._worst(operation.sources)
        return min(roots, key=lambda operation: operation.number, default=None)

    def _worst(self, sources: list[int]) -> list[int]:
        """NaN comes from NaN where there is any: -inf beside it is a mask."""
        nan = [source for source in sources if self._made[source].state == NAN]
        return nan or sources


def _is_inside(call: ObservedCall | None, outer: ObservedCall) -> bool:
    while call is not None and call is not outer:
        call = call.parent
    return call is not None


def _is_minus_infinity(tensor: tf.Tensor) -> bool:
    """Whether nothing else in it is not finite."""
    values = array_from_tensor(tensor)
    return bool((values[~np.isfinite(values)] == -math.inf).all())


def _unspoilt(name: str, inputs: list[tf.Tensor], attrs: tuple[object, ...]) -> list[tf.Tensor]:
    """The inputs that still hold what the operation read, now that it has run. In training the kernel of a fused batch
    normalization writes the new averages over the old ones, its last two inputs (TensorFlow 2.21, on a CPU)."""
    named = dict(zip(map(str, attrs[::2]), attrs[1::2]))
    return inputs[:3] if name.startswith("FusedBatchNorm") and named.get("is_training") else inputs


def _result(outputs: list[tf.Tensor], state: int) -> str:
    if state == NAN:
        return "nan"
    arrays = [array_from_tensor(t) for t in outputs if is_floating(t)]
    return "inf" if any((values == math.inf).any() for values in arrays) else "-inf"
