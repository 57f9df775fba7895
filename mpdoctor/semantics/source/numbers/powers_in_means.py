"""Means of powers under the root of the same degree, as in generalized-mean pooling: `mean(x ** p) ** (1 / p)`."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Value, is_api, known, options
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.operands.value_parts import first_argument, opened

POWERS = ("pow", "power")
_MEANS = ("reduce_mean", "mean", "avg_pool", "avg_pool2d", "average_pool", "pool2d")
_OF_WEIGHTS = ("add_weight", "Variable")


def is_root(exponent: Value | None) -> bool:
    """Whether a power with this exponent is a root: `1 / p`, or a number below 1."""
    if isinstance(exponent, Operation) and exponent.operator == "/":
        return known(exponent.operands[0]) in (1, 1.0) and _degree(exponent.operands[1]) > 1
    number = known(exponent)
    return isinstance(number, float) and 0 < number < 1


def powers_in_means(value: Value | None) -> Iterator[tuple[Value, float]]:
    """What is raised to a power in a mean, with that power: (x, 3.0) of `tf.reduce_mean(x ** 3)`."""
    for mean in opened(value):
        for power in opened(first_argument(mean)) if function_named(mean) in _MEANS else ():
            base, exponent = _power(power)
            degree = _degree(exponent)
            if base is not None and degree > 1:
                yield base, degree


def _power(value: Value) -> tuple[Value | None, Value | None]:
    if isinstance(value, Operation) and value.operator == "**" and len(value.operands) == 2:
        return value.operands
    if isinstance(value, Call) and function_named(value) in POWERS:
        return value.argument(0, "x"), value.argument(1, "y")
    return None, None


def _degree(exponent: Value | None) -> float:
    """The smallest number that an exponent may be, of a weight at first; 0 where that is not known."""
    numbers = [number for option in options(exponent) for number in _numbers(option) or (0.0,)]
    return min(numbers, default=0.0)


def _numbers(value: Value) -> tuple[float, ...]:
    if function_named(value) == "cast":
        return tuple(map(_degree, (first_argument(value),)))
    if not isinstance(value, Call) or value.method not in _OF_WEIGHTS:
        return numbers_from_value(value)
    initializer = value.keyword("initializer")
    is_constant = isinstance(initializer, Call) and is_api(initializer.callee, "keras.initializers.Constant")
    start = (
        first_argument(initializer) if is_constant and initializer is not None else value.argument(0, "initial_value")
    )
    return numbers_from_value(start) if is_constant or value.method == "Variable" else ()
