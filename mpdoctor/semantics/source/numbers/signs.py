"""The sign of a value, as far as the source shows it, and the exponentials that are at most 1 because of it."""

from __future__ import annotations

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Value, known, options
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.operands.value_parts import first_argument

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
