"""The sign of a value, as far as the source shows it, and what holds an exponential down."""

from __future__ import annotations

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Item, Value, known, options
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.operands.value_parts import first_argument

# What these give, or what is subtracted with them in it, cannot make `exp` overflow.
BOUNDED = (
    *("tanh", "sigmoid", "softmax", "log_softmax", "log_sigmoid", "logsigmoid", "clip", "clip_by_value", "minimum"),
    *("sin", "cos", "l2_normalize", "reduce_max", "max", "reduce_min", "min", "reduce_logsumexp", "logsumexp"),
)
_NEVER_NEGATIVE = ("abs", "square", "relu", "norm", "softplus", "exp", "sigmoid", "softmax")
_DEEPEST = 6


def is_at_most_one(value: Value) -> bool:
    """Whether it is `exp(-abs(x))` or `exp(-0.5 * x**2)`."""
    return function_named(value) == "exp" and _signs_of(first_argument(value), 0) == {-1}


def _signs_of(value: Value | None, depth: int) -> set[int]:
    """The sign of each of its options: 1 if it is never negative, -1 if never positive, 0 if it may be either."""
    return {_sign_of(option, depth) for option in options(value)} if depth < _DEEPEST else {0}


def _sign_of(value: Value, depth: int) -> int:
    number = known(value)
    if isinstance(number, (int, float)):
        return 1 if number >= 0 else -1
    if isinstance(value, Call):
        return 1 if function_named(value) in _NEVER_NEGATIVE else 0
    if not isinstance(value, Operation):
        return 0
    if value.operator == "**":
        return 1 if known(value.operands[1]) in (2, 4, 6) else 0
    if value.operator == "-" and len(value.operands) == 1:
        return -_one(_signs_of(value.operands[0], depth + 1))
    if value.operator in ("*", "/") and len(value.operands) == 2:
        if value.operator == "*" and value.operands[0] is value.operands[1]:
            return 1
        left, right = (_one(_signs_of(operand, depth + 1)) for operand in value.operands)
        return left * right
    return 0


def _one(signs: set[int]) -> int:
    return next(iter(signs)) if len(signs) == 1 else 0


def is_bounded(value: Value, depth: int = 0) -> bool:
    """Whether something holds a value down: a maximum subtracted from it, a sign, a bound."""
    for option in options(value):
        if _is_negated(option):
            return True
        if isinstance(option, Operation) and option.operator == "-":
            return True  # of something: the maximum, or a distance
        if isinstance(option, Operation) and option.operator in ("*", "/"):
            if any(number < 0 for operand in option.operands for number in numbers_from_value(operand)):
                return True
            if depth < _DEEPEST and any(is_bounded(operand, depth + 1) for operand in option.operands):
                return True
        if function_named(option) in BOUNDED or _is_of_one_sign(option) or is_at_most_one(option):
            return True
        if depth < _DEEPEST and isinstance(option, Item) and is_bounded(option.of, depth + 1):
            return True
    return False


def _is_of_one_sign(value: Value) -> bool:
    """Whether it is `where(x >= 0, -x, x)`: -|x|, as it is written where `exp` must not overflow."""
    if not isinstance(value, Call) or function_named(value) != "where":
        return False
    choices = [options(choice) for choice in value.arguments(slice(1, 3))]
    negated = [
        {id(inner) for option in choice if _is_negated(option) for inner in options(option.parts[0])}
        for choice in choices
    ]
    plain = [{id(option) for option in choice} for choice in choices]
    return len(choices) == 2 and bool(negated[0] & plain[1] or negated[1] & plain[0])


def _is_negated(value: Value) -> bool:
    return isinstance(value, Operation) and value.operator == "-" and len(value.operands) == 1
