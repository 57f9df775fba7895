"""Every operation of TensorFlow in a step that runs eagerly, watched: which of them made the first number that was not
finite, and what went into it.

Callbacks on operations are what tf.debugging.enable_check_numerics stands on; they see the way back as well.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from mpdoctor.examiner.magnitudes import (
    FINITE,
    NAN,
    array_from_tensor,
    is_floating,
    is_number,
    largest_in_float32,
    state_of,
)
from mpdoctor.examiner.ownership import own_location
from mpdoctor.facts.location import Location
from mpdoctor.facts.training import OperationFacts

# Reading one of these depends on the weights, whatever else goes in.
READS_WEIGHTS = frozenset(("ReadVariableOp", "ResourceGather", "ResourceGatherNd"))
# Operations that hand numbers on as they are: no reader would call them the place where something happens.
SOFTMAX = ("Softmax", "LogSoftmax")
SHAPES = frozenset(("Identity", "Reshape", "ExpandDims", "Squeeze", "StridedSlice", "ConcatV2", "Pack", "Transpose"))
HANDS_ON = frozenset(("Cast", "Identity", "Shape", "Reshape", "StopGradient", "Pack", "ConcatV2", "ZerosLike"))


class Made(NamedTuple):
    """A tensor that is not finite. `maker`: the number of the operation that made it, None where nobody did: data."""

    state: int
    maker: Any


class Operation:
    """One operation that put out something not finite. `layer` is the layer call that it ran in, or whose way back it
    is part of; `sources` the tensors not finite that went in."""

    def __init__(self, number: int, layer: Any, back: bool, sources: list[int], facts: OperationFacts) -> None:
        self.number, self.layer, self.back, self.sources, self.facts = number, layer, back, sources, facts


class OperationTrace:
    """Watches operations while it is entered.

    `layer` is the layer call that runs now and `back` whether gradients are being computed: the observer of the layers
    sets them. `labels` tells of a gradient the layer call whose output it belongs to.
    """

    def __init__(self) -> None:
        self.layer: Any = None
        self.back = False
        self.where = ""  # what the training code does now, where it is no layer: "scaling", "loop"
        self.labels: dict[int, Any] = {}
        self.failure: Exception | None = None
        self._busy = False
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self.labels.clear()
        self._made: dict[int, Made] = {}  # by tensor
        self._known: set[int] = set()
        self._weighty: set[int] = set()
        self.inputs: set[int] = set()  # tensors that the outermost layers were given, in whatever shape
        self._operations: dict[int, Operation] = {}
        self._lines: dict[int, tuple[str, Location | None]] = {}  # by tensor: the operation that made it
        self._users: dict[int, tuple[str, Location | None]] = {}  # by tensor: the last operation that used it

    def __enter__(self) -> OperationTrace:
        op_callbacks.add_op_callback(self._see)
        return self

    def __exit__(self, *error: Any) -> None:
        op_callbacks.remove_op_callback(self._see)

    def given(self, tensors: list[Any]) -> None:
        """To an outermost layer: what another model made of its weights is no data."""
        self.inputs.update(tensor._id for tensor in tensors if tensor._id not in self._weighty)

    # --- every operation ------------------------------------------------------------------------------------------
    def _see(self, name: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> None:
        if self._busy or graph is not None or self.failure is not None:
            return
        self._busy = True
        try:
            self._note(_text(name), list(inputs), attrs, list(outputs))
        except Exception as error:  # ours: it must not end a step of the user's
            self.failure = error
        finally:
            self._busy = False

    def _note(self, name: str, inputs: list[Any], attrs: Any, outputs: list[Any]) -> None:
        self.count += 1
        layer = self.layer
        if self.back:
            layer = next((self.labels[t._id] for t in inputs if t._id in self.labels), None)
            self.labels.update((t._id, layer) for t in outputs if layer is not None)
        elif name not in HANDS_ON:
            line = (name, own_location())
            self._lines.update((t._id, line) for t in outputs)
            self._users.update((t._id, line) for t in inputs)
        if name in READS_WEIGHTS or any(t._id in self._weighty for t in inputs):
            self._weighty.update(t._id for t in outputs)
        elif (name in SHAPES or name == "Cast") and any(t._id in self.inputs for t in inputs):
            self.inputs.update(t._id for t in outputs)
        states = [state_of(t) for t in outputs]
        self._known.update(t._id for t in outputs)
        if not any(states):
            return
        sources = [t._id for t in inputs if self._state(t)]
        facts = self._facts(name, inputs, attrs, outputs, max(states), sources)
        self._operations[self.count] = Operation(self.count, layer, self.back, sources, facts)
        for tensor, state in zip(outputs, states):
            if state:
                self._made[tensor._id] = Made(state, self.count)

    def _state(self, tensor: Any) -> int:
        """Of an input: known from the operation that made it, else looked at once."""
        if tensor._id not in self._known:
            self._known.add(tensor._id)
            state = state_of(tensor)
            if state:
                self._made[tensor._id] = Made(state, None)
        made = self._made.get(tensor._id)
        return FINITE if made is None else made.state

    def _facts(
        self, name: str, inputs: list[Any], attrs: Any, outputs: list[Any], state: int, sources: list[int]
    ) -> OperationFacts:
        where = "gradient" if self.back else "layer" if self.layer is not None else self.where or "loss"
        kinds = is_number if name == "Cast" else is_floating
        floats = [array_from_tensor(t) for t in inputs if kinds(t)]
        numbers = [np.abs(values[np.isfinite(values)]) for values in floats]
        nonzero = [values[values > 0] for values in numbers]
        bad = [values[~np.isfinite(values)] for values in floats]
        minus = any(values.size for values in bad) and all((values == -math.inf).all() for values in bad)
        return OperationFacts(
            name=name,
            where=where,
            dtype=next((t.dtype.name for t in outputs if is_floating(t)), ""),
            result=_result(outputs, state),
            largest=max((float(values.max()) for values in nonzero if values.size), default=0.0),
            smallest=min((float(values.min()) for values in nonzero if values.size), default=0.0),
            holds_zero=any((values == 0).any() for values in numbers),
            elements=max((values.size for values in floats), default=1),
            in_float32=None if sources else largest_in_float32(name, inputs, attrs, outputs),
            given=self._given(sources, inputs),
            from_data=name == "Cast" and inputs[0]._id in self.inputs,
            masked=minus,
            location=self._line(name, inputs),
        )

    def _given(self, sources: list[int], inputs: list[Any]) -> str:
        """Of what is not finite and was made by no operation: a vector of NaN is data, a number of -inf a constant."""
        given = [t for t in inputs if t._id in sources and self._made[t._id].maker is None]
        if not given or len(given) < len(sources):
            return ""
        large = any(int(tf.size(t)) > 1 and state_of(t) == NAN for t in given)
        return "data" if large or any(t._id in self.inputs for t in given) else "constant"

    def _line(self, name: str, inputs: list[Any]) -> Location | None:
        """Of an operation on the way back, the line whose gradient it is: that of the operation of the same name, else
        the last that used what it reads."""
        if not self.back:
            return own_location()
        forward = name[: -len("Grad")] if name.endswith("Grad") else ""
        for tensor in inputs:
            made_by, line = self._lines.get(tensor._id, ("", None))
            if forward and made_by == forward:
                return line
        return next((self._users[t._id][1] for t in inputs if t._id in self._users), None)

    # --- afterwards -----------------------------------------------------------------------------------------------
    def is_bad(self, tensor: Any) -> bool:
        return bool(self._state(tensor))

    def maker(self, tensor: Any) -> Operation | None:
        """The operation whose result this tensor is, where it is not finite."""
        made = self._made.get(tensor._id)
        return None if made is None else self._operations.get(made.maker)

    def root(self, tensor: Any) -> Operation | None:
        """The operation that made the first number not finite of all that this tensor was made from.

        None where no operation touched it. A row that a mask leaves nothing of is the softmax's NaN, not the mask's."""
        self._state(tensor)
        waiting, seen, roots = [tensor._id], set(), []
        while waiting:
            made = self._made.get(waiting.pop())
            operation = None if made is None else self._operations.get(made.maker)
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


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _result(outputs: list[Any], state: int) -> str:
    if state == NAN:
        return "nan"
    arrays = [array_from_tensor(t) for t in outputs if is_floating(t)]
    return "inf" if any((values == math.inf).any() for values in arrays) else "-inf"
