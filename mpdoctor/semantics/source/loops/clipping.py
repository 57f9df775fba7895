"""Functions that clip gradients, the values that they clip at, and clipping that a program writes out by hand."""

from __future__ import annotations

from typing import TypeGuard

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.memoize import asked_once
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Attribute, Collection, Item, Known, Value, is_api, known, options
from mpdoctor.semantics.source.loops.gradients import KEEPING_NUMBERS, is_gradient_call, until_gradients
from mpdoctor.semantics.source.loops.scaling import DIVIDING, DIVIDING_OPS, MULTIPLYING

# Function → the positions of the limits, and their names.
CLIPPING: dict[str, tuple[tuple[int, str], ...]] = {
    "tensorflow.clip_by_global_norm": ((1, "clip_norm"),),
    "tensorflow.clip_by_norm": ((1, "clip_norm"),),
    "tensorflow.clip_by_average_norm": ((1, "clip_norm"),),
    "tensorflow.clip_by_value": ((1, "clip_value_min"), (2, "clip_value_max")),
    "tensorflow.keras.backend.clip": ((1, "min_value"), (2, "max_value")),
    "keras.backend.clip": ((1, "min_value"), (2, "max_value")),
    "keras.ops.clip": ((1, "x_min"), (2, "x_max")),
    "numpy.clip": ((1, "a_min"), (2, "a_max")),
}
BOUNDS = (
    *("tensorflow.maximum", "tensorflow.minimum", "keras.ops.maximum", "keras.ops.minimum"),
    *("builtins.max", "builtins.min", "numpy.maximum", "numpy.minimum"),
)
# Functions whose result grows with the numbers that they are given.
MEASURING = (
    *(
        "tensorflow.linalg.global_norm",
        "tensorflow.norm",
        "tensorflow.nn.l2_loss",
        "keras.ops.norm",
        "numpy.linalg.norm",
    ),
    *("tensorflow.reduce_sum", "tensorflow.reduce_max", "tensorflow.reduce_mean", "tensorflow.add_n", "builtins.sum"),
    *("keras.ops.sum", "keras.ops.max", "keras.ops.mean", "tensorflow.stack", "keras.ops.stack"),
    *("tensorflow.square", "tensorflow.abs", "tensorflow.sqrt", "keras.ops.square", "keras.ops.abs", "keras.ops.sqrt"),
    *("math.sqrt", "builtins.abs", "tensorflow.cast", "keras.ops.cast", "builtins.float"),
)
INVERTING = ("tensorflow.rsqrt", "keras.ops.rsqrt", "tensorflow.reciprocal", "keras.ops.reciprocal")
CHOOSING = ("tensorflow.where", "keras.ops.where")
PASSING = (
    *("builtins.list", "builtins.tuple", "tensorflow.cast", "keras.ops.cast", "tensorflow.convert_to_tensor"),
    *("tensorflow.reshape", "keras.ops.reshape", "tensorflow.expand_dims", "keras.ops.expand_dims"),
)
SMALLEST_LIMIT = 1e-3  # a smaller number keeps a divisor from 0
LARGEST_LIMIT = 1000  # a larger number may have been chosen for scaled gradients
# What to give the inner optimizer instead.
ARGUMENT = {"clip_by_global_norm": "global_clipnorm", "clip_by_norm": "clipnorm", "clip_by_average_norm": "clipnorm"}


def limits(value: Value) -> tuple[Value, ...] | None:
    """The limits that a call clips at, as far as they are given; None if it clips nothing."""
    arguments = limit_arguments(value)
    if not isinstance(value, Call) or not arguments:
        return None
    given = [value.argument(position, keyword) for position, keyword in arguments]
    return tuple(limit for limit in given if limit is not None)


def limit_arguments(value: Value) -> tuple[tuple[int, str], ...]:
    """The positions and the names of a call's limits; none if it clips nothing."""
    if isinstance(value, Call):
        for name, arguments in CLIPPING.items():
            if is_api(value.callee, name):
                return arguments
    return ()


def argument_for(call: Call) -> str:
    return ARGUMENT.get(call.method, "clipvalue")


def cuts_by_norm(value: Value, gradient: Call) -> TypeGuard[Operation | Call]:
    """Whether it makes gradients smaller by their own size: `g / tf.maximum(1.0, norm / limit)`,
    `g * tf.minimum(1.0, limit / norm)`, `g / norm`."""
    operator, operands = operator_and_operands(value)
    if len(operands) != 2:
        return False
    left, right = operands
    if operator == "/":
        return _is_gradient(left, gradient) and _is_size(right, gradient)
    pairs = ((left, right), (right, left)) if operator == "*" else ()
    return any(_is_gradient(one, gradient) and _is_limit(factor, gradient) for one, factor in pairs)


def cuts_each(value: Value, gradient: Call) -> TypeGuard[Call]:
    """Whether it keeps each number of a gradient between two limits: `tf.maximum(tf.minimum(g, 1.0), -1.0)`."""
    inner = [part for part in _bounded(value) if is_bound(part)]
    return any(_is_gradient(part, gradient) for bound in inner for part in _bounded(bound))


def _bounded(value: Value) -> tuple[Value, ...]:
    """The arguments of a `maximum` or `minimum` that are no numbers."""
    given = value.arguments(slice(2)) if isinstance(value, Call) and is_bound(value) else ()
    return tuple(part for part in given if not _is_number(part))


def is_bound(value: Value) -> TypeGuard[Call]:
    return isinstance(value, Call) and is_api(value.callee, *BOUNDS)


def operator_and_operands(value: Value) -> tuple[str, tuple[Value, ...]]:
    """("/" or "*", both operands) of an operation or of a call that divides or multiplies."""
    if isinstance(value, Operation):
        return value.operator, value.operands
    if isinstance(value, Call) and is_api(value.callee, *DIVIDING, *DIVIDING_OPS):
        return "/", value.arguments(slice(2))
    if isinstance(value, Call) and is_api(value.callee, *MULTIPLYING):
        return "*", value.arguments(slice(2))
    return "", ()


@asked_once
def _is_gradient(value: Value, gradient: Call) -> bool:
    """Whether it is one of these gradients as the tape gave it, times a number at most."""
    return any(_is_one_gradient(option, gradient) for option in options(value))


def _is_one_gradient(value: Value, gradient: Call) -> bool:
    if value is gradient:
        return True
    operator, operands = operator_and_operands(value)
    if operator:
        gradients = [part for part in operands if _is_gradient(part, gradient)]
        return operator in ("*", "/") and len(gradients) == 1 and sum(map(_is_number, operands)) == 1
    inside = value.items if isinstance(value, Collection) else (value.of,) if isinstance(value, Item) else ()
    passed = value.arguments(slice(1)) if isinstance(value, Call) and is_api(value.callee, *PASSING) else inside
    return any(_is_gradient(part, gradient) for part in passed)


@asked_once
def _is_size(value: Value, gradient: Call) -> bool:
    """Whether it grows with the scale of the gradients: their norm, a part of it, the larger of a number and it."""
    choices = options(value)
    return bool(choices) and all(_is_one_size(option, gradient) for option in choices)


def _is_one_size(value: Value, gradient: Call) -> bool:
    if isinstance(value, Call) and is_api(value.callee, *MEASURING):
        return any(_is_size(part, gradient) or _is_gradient(part, gradient) for part in value.arguments(slice(1)))
    if isinstance(value, Collection):
        return any(_is_size(item, gradient) for item in value.items)
    inner = _bounded(value) if is_bound(value) else _grown(value)
    return bool(inner) and all(_is_size(part, gradient) or _is_gradient(part, gradient) for part in inner)


def _grown(value: Value) -> tuple[Value, ...]:
    """What an operation adds, multiplies or raises, but for numbers; of `size / number` the size."""
    operator, operands = operator_and_operands(value)
    sizes = tuple(part for part in operands if not _is_number(part))
    is_divided = operator in ("/", "**") and sizes == operands[:1]
    return sizes if len(operands) == 2 and (operator in ("+", "*") or is_divided) else ()


@asked_once
def _is_limit(value: Value, gradient: Call) -> bool:
    """Whether it shrinks as the gradients grow: `limit / norm`, the smaller of a number and it."""
    choices = [option for option in options(value) if not _is_number(option)]
    return bool(choices) and all(_is_one_limit(option, gradient) for option in choices)


def _is_one_limit(value: Value, gradient: Call) -> bool:
    operator, operands = operator_and_operands(value)
    if operator:
        return operator == "/" and len(operands) == 2 and _is_number(operands[0]) and _is_size(operands[1], gradient)
    if isinstance(value, Call) and is_api(value.callee, *INVERTING):
        return any(_is_size(norm, gradient) for norm in value.arguments(slice(1)))
    if isinstance(value, Call) and is_api(value.callee, *PASSING):
        return any(_is_limit(passed, gradient) for passed in value.arguments(slice(1)))
    chosen = value.arguments(slice(1, 3)) if isinstance(value, Call) and is_api(value.callee, *CHOOSING) else ()
    inner = _bounded(value) or tuple(part for part in chosen if not _is_number(part))
    return len(inner) == 1 and _is_limit(inner[0], gradient)


@asked_once
def _is_number(value: Value) -> bool:
    """Whether it is a number of the program's, and nothing shows that a loss scale is in it."""
    if isinstance(value, Known):
        return isinstance(value.value, (int, float)) and abs(value.value) < LARGEST_LIMIT
    if isinstance(value, (Attribute, Parameter)):
        return "scale" not in value.name
    if isinstance(value, Call) and is_api(value.callee, *KEEPING_NUMBERS):
        return all(map(_is_number, value.arguments(slice(1))))
    return isinstance(value, Operation) and all(map(_is_number, value.operands))


def is_divided_by_its_size(value: Value) -> bool:
    """Whether a gradient is divided by one, as in `g / norm` and `g * (radius / norm)`: whatever both were multiplied
    by is gone. Not in `g / tf.maximum(1.0, norm)`."""
    operator, operands = operator_and_operands(value)
    if len(operands) != 2:
        return False
    left, right = operands
    if operator == "/":
        return _holds_gradient(left) and _is_plain_size(right)
    pairs = ((left, right), (right, left)) if operator == "*" else ()
    return any(_holds_gradient(one) and _is_over_size(factor) for one, factor in pairs)


def _is_over_size(factor: Value) -> bool:
    if isinstance(factor, Call) and is_api(factor.callee, *INVERTING):
        return _is_plain_size(factor)
    operator, operands = operator_and_operands(factor)
    if operator != "/" or len(operands) != 2:
        return False
    return not _holds_gradient(operands[0]) and _is_plain_size(operands[1])


def _is_plain_size(value: Value) -> bool:
    parts = list(until_gradients(value))
    numbers = (known(given) for part in parts if is_bound(part) for given in part.arguments(slice(2)))
    is_bounded = any(isinstance(number, (int, float)) and number >= SMALLEST_LIMIT for number in numbers)
    return not is_bounded and any(isinstance(part, Call) and is_gradient_call(part) for part in parts)


def _holds_gradient(value: Value) -> bool:
    return any(isinstance(part, Call) and is_gradient_call(part) for part in until_gradients(value))
