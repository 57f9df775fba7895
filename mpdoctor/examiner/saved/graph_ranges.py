"""Upper bounds for the values of a graph's tensors, derived without running it."""

from __future__ import annotations

import math
from typing import Any, Tuple

import tensorflow as tf

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.directories import EXPORT_AGAIN
from mpdoctor.examiner.saved.graph_flow import LONGEST_NAME, GraphFlow, Place, dtype_name

# The result holds the numbers of the first input, and no others.
SAME_NUMBERS = frozenset(
    (
        *("Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics", "Enter", "Exit"),
        *("Reshape", "Squeeze", "ExpandDims", "Transpose", "EnsureShape", "BroadcastTo", "Tile"),
        *("StridedSlice", "Slice", "GatherV2", "Cast"),
    )
)
BETWEEN_0_AND_1 = frozenset(["Sigmoid", "Softmax"])
BETWEEN_MINUS_1_AND_1 = frozenset(["Tanh", "Softsign", "Sin", "Cos", "Erf", "Sign"])
AT_LEAST_0 = frozenset(["Abs", "Square", "Relu", "Softplus", "SquaredDifference", "Sqrt"])
AT_MOST_0 = frozenset({"LogSoftmax"})
DEEPEST = 24
LARGEST_CONSTANT = 100_000  # elements, or bytes

Range = Tuple[float, float]
ANYTHING = (-math.inf, math.inf)


class Ranges:
    """(least, greatest) of a place; infinities where they are not known."""

    def __init__(self, flow: GraphFlow) -> None:
        self._flow = flow
        self._known: dict[Place, Range] = {}

    def of(self, place: Place, depth: int = DEEPEST) -> Range:
        if place not in self._known and depth:
            self._known[place] = ANYTHING  # a loop leads back here
            self._known[place] = self._range(place, depth - 1)
        return self._known.get(place, ANYTHING)

    def _range(self, place: Place, depth: int) -> Range:
        inputs, node = self._flow.inputs.get(place, []), self._flow.nodes.get(place)
        if node is None:  # an argument or the output of a call: whatever is handed over
            given = [self.of(source, depth) for source in inputs]
            return (min(low for low, _ in given), max(high for _, high in given)) if given else ANYTHING
        if node.op == "Const":
            return _range_of_constant(node)
        if node.op == "Cast" and "SrcT" in node.attr and node.attr["SrcT"].type == tf.bool.as_datatype_enum:
            return (0.0, 1.0)
        if node.op in BETWEEN_0_AND_1:
            return (0.0, 1.0)
        if node.op in BETWEEN_MINUS_1_AND_1:
            return (-1.0, 1.0)
        if node.op in AT_MOST_0:
            return (-math.inf, 0.0)
        if node.op == "Sub" and self._takes_its_own_maximum(inputs):
            return (-math.inf, 0.0)
        return self._computed(node.op, [self.of(source, depth) for source in inputs], inputs)

    def _computed(self, op: str, given: list[Range], inputs: list[Place]) -> Range:
        if not given:
            return ANYTHING
        low, high = given[0]
        if op in SAME_NUMBERS:
            return given[0]
        if op == "Neg":
            return (-high, -low)
        if op == "Relu6":
            return (0.0, 6.0)
        if op in ("Exp", "Expm1"):
            return (0.0 if op == "Exp" else -1.0, _exp(high))
        if op in AT_LEAST_0 or (op == "Mul" and len(inputs) == 2 and inputs[0] == inputs[1]):
            return (0.0, high if op == "Relu" else math.inf)
        if op == "Max":
            return given[0]
        if len(given) < 2:
            return ANYTHING
        return self._joined(op, given)

    def _joined(self, op: str, given: list[Range]) -> Range:
        (low, high), (other_low, other_high) = given[0], given[1]
        if op == "Minimum":
            return (min(low, other_low), min(high, other_high))
        if op == "Maximum":
            return (max(low, other_low), max(high, other_high))
        if op == "ClipByValue" and len(given) == 3:
            return (other_low, given[2][1])
        if op in ("Mul", "MulNoNan"):
            corners = [_times(a, b) for a in (low, high) for b in (other_low, other_high)]
            return (min(corners), max(corners))
        if op in ("Add", "AddV2"):
            return (low + other_low, high + other_high)
        if op == "Sub":
            return (low - other_high, high - other_low)
        if op in ("ConcatV2", "Pack"):
            return (min(low for low, _ in given), max(high for _, high in given))
        return ANYTHING

    def _takes_its_own_maximum(self, inputs: list[Place]) -> bool:
        """Whether this is `x - max(x)`, where what is not finite in the maximum may have been replaced, or
        `x - logsumexp(x)`, which takes more."""
        left, right = (self.origin(source) for source in inputs[:2])
        return left is not None and self._is_at_least_maximum(right, left, set())

    def _is_at_least_maximum(self, place: Place | None, of: Place, seen: set[Place]) -> bool:
        """Whether this place is at least the maximum of the other. Each place is asked once: a yes ends the search."""
        if place is None or place in seen or len(seen) >= DEEPEST:
            return False
        seen.add(place)
        op, before = self._flow.op(place), [self.origin(source) for source in self._flow.inputs.get(place, [])]
        if op == "Max":
            return before[:1] == [of]
        if op in ("Select", "SelectV2"):  # where it is finite
            return len(before) == 3 and self._is_at_least_maximum(before[1], of, seen)
        if op in ("Add", "AddV2"):  # the logarithm of a sum in which the maximum itself is exp(0)
            logarithms = [source for source in before if source is not None and self._flow.op(source) == "Log"]
            return bool(logarithms) and any(self._is_at_least_maximum(source, of, seen) for source in before)
        return False

    def origin(self, place: Place) -> Place | None:
        """The place from which the numbers of a place come unchanged; None where too many operations are between."""
        for _ in range(DEEPEST):
            inputs = self._flow.inputs.get(place, [])
            is_handed_on = place not in self._flow.nodes and len(inputs) == 1
            if not inputs or not (is_handed_on or self._flow.op(place) in SAME_NUMBERS):
                return place
            place = inputs[0]
        return None


def _range_of_constant(node: tf.compat.v1.NodeDef) -> Range:
    tensor = node.attr["value"].tensor
    if not tf.dtypes.as_dtype(dtype_name(tensor.dtype)).is_floating or not tensor.ByteSize() < LARGEST_CONSTANT:
        return ANYTHING
    if not 0 <= _elements(tensor) < LARGEST_CONSTANT:  # one number may fill it
        return ANYTHING
    try:
        values = tf.make_ndarray(tensor).astype("float64")
    except (TypeError, ValueError) as error:
        problem = f"of the constant {node.name[:LONGEST_NAME]!r} TensorFlow says {str(error)!r}"
        raise Unusable(f"The graph is damaged: {problem}. {EXPORT_AGAIN}") from None
    return (float(values.min()), float(values.max())) if values.size else ANYTHING


def _elements(tensor: Any) -> int:
    """How many elements the tensor has; -1 where no tensor has so many dimensions, or such ones."""
    sizes = [int(dimension.size) for dimension in tensor.tensor_shape.dim[:255]]
    return math.prod(sizes) if len(sizes) < 255 and min(sizes, default=0) >= 0 else -1


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _times(one: float, other: float) -> float:
    return 0.0 if 0.0 in (one, other) else one * other
