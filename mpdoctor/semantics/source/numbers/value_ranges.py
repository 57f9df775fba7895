"""Ranges that a tensor's numbers cannot leave, as the functions show that it is made by."""

from __future__ import annotations

import math

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.numbers.constants import numbers_from_value

Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)
DEEPEST = 8
GIVEN: dict[str, Range] = {
    **dict.fromkeys(("sigmoid", "hard_sigmoid", "softmax", "one_hot", "eye"), (0.0, 1.0)),
    **dict.fromkeys(("tanh", "sin", "cos", "sign", "erf", "softsign", "l2_normalize"), (-1.0, 1.0)),
    **dict.fromkeys(("ones", "ones_like"), (1.0, 1.0)),
    **dict.fromkeys(("zeros", "zeros_like"), (0.0, 0.0)),
    "relu6": (0.0, 6.0),
}
KEEPING = frozenset(
    [
        *("cast", "reshape", "expand_dims", "squeeze", "transpose", "permute_dimensions", "identity", "stop_gradient"),
        *("convert_to_tensor", "reduce_mean", "mean", "reduce_max", "max", "reduce_min", "min", "tile", "repeat"),
    ]
)
COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
ASKING = frozenset(
    [
        *("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"),
        *("logical_and", "logical_or", "logical_not", "is_finite", "is_nan", "sequence_mask"),
    ]
)


def largest_of(value: Value | None) -> float:
    """The largest magnitude that its numbers can have; infinite where nothing shows one."""
    return max(map(abs, range_of(value)))


def range_of(value: Value | None, depth: int = 0) -> Range:
    """The smallest and the largest number that it can have; infinite where nothing shows one."""
    if value is None or depth > DEEPEST:
        return ANY
    ranges = [_range_of_one(option, depth + 1) for option in options(value)]
    return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else ANY


def _range_of_one(value: Value, depth: int) -> Range:
    if isinstance(value, Operation):
        return _range_of_operation(value, depth)
    named = _range_of_call(value, function_named(value), depth) if isinstance(value, Call) else ANY
    numbers = [float(number) for number in numbers_from_value(value)] if named == ANY else []
    return (min(numbers), max(numbers)) if numbers else named


def _range_of_operation(value: Operation, depth: int) -> Range:
    if value.operator in COMPARISONS:
        return (0.0, 1.0)
    left, *rest = (range_of(operand, depth) for operand in value.operands)
    right = rest[0] if rest else None
    if right is None:
        return (-left[1], -left[0]) if value.operator == "-" else ANY
    if not all(map(math.isfinite, (*left, *right))):
        return ANY
    if value.operator == "*" and value.operands[0] is value.operands[1]:
        return _squared(left)
    if value.operator == "**" and right == (2.0, 2.0):
        return _squared(left)
    ends = {
        "+": (left[0] + right[0], left[1] + right[1]),
        "-": (left[0] - right[1], left[1] - right[0]),
        "*": (min(a * b for a in left for b in right), max(a * b for a in left for b in right)),
    }
    return ends.get(value.operator, ANY)


def _range_of_call(call: Call, name: str, depth: int) -> Range:
    if name in ASKING:
        return (0.0, 1.0)
    if name in GIVEN:
        return GIVEN[name]
    if name in KEEPING:
        return range_of(call.argument(0), depth)
    if name in ("clip_by_value", "clip"):
        return (range_of(call.argument(1), depth)[0], range_of(call.argument(2), depth)[1])
    if name in ("square", "abs", "relu"):
        low, high = range_of(call.argument(0), depth)
        return _squared((low, high)) if name == "square" else (0.0, max(high, 0.0 if name == "relu" else -low))
    return ANY


def _squared(given: Range) -> Range:
    return (0.0, max(map(abs, given)) ** 2)
