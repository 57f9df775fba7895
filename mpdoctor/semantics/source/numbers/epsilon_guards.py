"""Small numbers that protect a division, a logarithm or a root from 0: `x / (norm + 1e-8)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Item, Known, Value, known, options
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.numbers.constants import numbers_from_value

DIVISOR, ROOT_DIVISOR, LOG, ROOT, RECIPROCAL_ROOT = "divisor", "divisor under a root", "log", "root", "reciprocal root"
# Whose gradient at 1 is infinite.
INVERSE = ("acos", "arccos", "asin", "arcsin")
ADDED, BOUND = "added", "bound"

_DIVIDING = ("divide", "truediv", "true_divide")
_OF_ONE = ("reciprocal", "log", "sqrt", "rsqrt")
_POWERS = ("pow", "power")
_EXPONENTS = {0.5: ROOT, -0.5: RECIPROCAL_ROOT, -1: DIVISOR}
_PASSING = ("reshape", "expand_dims", "squeeze", "identity", "stop_gradient", "transpose", "cast")
_ADDING_UP = ("reduce_sum", "reduce_mean", "sum", "mean")
_BETWEEN_MINUS_ONE_AND_ONE = ("tanh", "sigmoid", "softmax", "sin", "cos", "softsign")
_LOWER = {"maximum": (0, 1), "clip_by_value": (1,), "clip": (1,)}
_UPPER = {"minimum": (0, 1), "clip_by_value": (2,), "clip": (2,)}
_NAMES = {1: ("clip_value_min", "min_value", "x_min"), 2: ("clip_value_max", "max_value", "x_max")}
LEAST_OF_NOTE = 1e-4  # another constant from here on keeps the sum away from 0 by itself
MOST_FACTORS = 3
User = Operation | Call
Guard = tuple[str, str, Value, Value, User]


def guards(facts: SourceFacts) -> Iterator[Guard]:
    """(where it is used, how, the number, the guarded value, what uses it) for every number that stands guard."""
    for use, argument, user in _uses(facts):
        for part in _factors(argument) if use == DIVISOR else _opened(argument):
            if use == DIVISOR and _is_root(part):
                yield from _guards_in(ROOT_DIVISOR, _first(part), user)
            yield from _guards_in(use, part, user)


def divisors(facts: SourceFacts) -> Iterator[Value]:
    """Everything that is divided by; for `tf.math.rsqrt(x)` the value under the root."""
    return (value for use, value, _ in _uses(facts) if use in (DIVISOR, RECIPROCAL_ROOT))


def upper_bounds(facts: SourceFacts) -> Iterator[tuple[str, Value, Value, User]]:
    """(how it is used, number, clipped value, what uses it) where `log(1 - p)`, a division by `1 - p` or `acos(p)`
    trusts in p staying below 1. Of inverse functions how it is used is their name."""
    for call, name in functions_called(facts):
        if name in INVERSE:
            for clipped in _opened(_first(call)):
                for number in _bounds(clipped, _UPPER):
                    yield call.method, number, clipped, call
    for use, argument, user in _uses(facts):
        for part in _opened(argument):
            if use not in (LOG, DIVISOR) or not isinstance(part, Operation) or part.operator != "-":
                continue
            if len(part.operands) != 2 or known(part.operands[0]) not in (1, 1.0):
                continue
            for clipped in _opened(part.operands[1]):
                for number in _bounds(clipped, _UPPER):
                    yield use, number, clipped, user


@lru_cache(maxsize=1)
def _uses(facts: SourceFacts) -> tuple[tuple[str, Value, User], ...]:
    return tuple(_found_uses(facts))


def _found_uses(facts: SourceFacts) -> Iterator[tuple[str, Value, User]]:
    yield from _in_operations(facts)
    yield from _in_calls(facts)


def _in_operations(facts: SourceFacts) -> Iterator[tuple[str, Value, User]]:
    for operation in facts.operations:
        if operation.operator == "/" and len(operation.operands) == 2:
            yield DIVISOR, operation.operands[1], operation
        elif operation.operator == "**" and len(operation.operands) == 2:
            use = _kind_of_power(operation.operands[1])
            if use is not None:
                yield use, operation.operands[0], operation


def _in_calls(facts: SourceFacts) -> Iterator[tuple[str, Value, User]]:
    for call, name in functions_called(facts):
        first = _first(call) if name in _OF_ONE else None
        divisor = call.argument(1) if name in _DIVIDING else None
        if divisor is not None:
            yield DIVISOR, divisor, call
        elif name == "reciprocal" and first is not None:
            yield DIVISOR, first, call
        elif name in _POWERS and (use := _kind_of_power(call.argument(1, "y"))) is not None:
            yield use, call.argument(0, "x") or call, call
        elif name == "log" and first is not None:
            yield LOG, first, call
        elif name in ("sqrt", "rsqrt") and first is not None:
            yield (ROOT if name == "sqrt" else RECIPROCAL_ROOT), first, call


def same_added_above(number: Value, quotient: User) -> Value | None:
    """The term of a dividend that is the number which is added to the divisor as well: `(2 * both + 1e-7) / (sum +
    1e-7)`. None where the dividend has no such term."""
    dividend = quotient.argument(0, "x") if isinstance(quotient, Call) else quotient.operands[0]
    numbers = set(numbers_from_value(number))
    terms = (term for part in _opened(dividend) for term in _terms(part) if term is not part)
    return next((term for term in terms if set(numbers_from_value(term)) == numbers), None)


def _kind_of_power(exponent: Value | None) -> str | None:
    """How a power with this exponent uses its base: as a divisor or under a root; None for others."""
    number = known(exponent)
    return _EXPONENTS.get(number) if isinstance(number, (int, float)) else None


def _guards_in(use: str, value: Value | None, user: User) -> Iterator[Guard]:
    """The small numbers that keep a value away from 0: a lower bound of it, or a term that is added to it."""
    for part in _opened(value):
        for number in _bounds(part, _LOWER):
            yield use, BOUND, number, part, user
        terms = list(_terms(part))
        small = [term for term in terms if 0 < max(numbers_from_value(term), default=0) < LEAST_OF_NOTE]
        others = [term for term in terms if term not in small]
        if len(small) != 1 or not others or any(map(_stays_away_from_zero, others)):
            continue
        if not any(numbers_from_value(term) for term in others):
            yield use, ADDED, small[0], part, user


def _stays_away_from_zero(value: Value) -> bool:
    """Whether it is a sum or mean of exponentials of which one at least is no small number: of what lies between -1 and
    1, or of what its own largest along that axis was taken from, as a softmax by hand does."""
    for option in options(value):
        is_sum = isinstance(option, Call) and function_named(option) in _ADDING_UP
        along = option.argument(1, "axis") if isinstance(option, Call) and is_sum else None
        inside = list(_opened(_first(option) if is_sum else option))
        if not inside or not all(_is_exponential_of_note(part, is_sum, along) for part in inside):
            return False
    return bool(options(value))


def _is_exponential_of_note(value: Value, is_summed: bool, along: Value | None) -> bool:
    if function_named(value) != "exp":
        return False
    exponents = list(_opened(_first(value)))
    return bool(exponents) and all(
        function_named(exponent) in _BETWEEN_MINUS_ONE_AND_ONE or (is_summed and _is_below_its_largest(exponent, along))
        for exponent in exponents
    )


def _is_below_its_largest(value: Value, along: Value | None) -> bool:
    """Whether it is `x - tf.reduce_max(x, axis)`, with the axis that is added up along; None adds all up."""
    if not isinstance(value, Operation) or value.operator != "-" or len(value.operands) != 2:
        return False
    numbers, largest = (list(_opened(operand)) for operand in value.operands)
    taken = largest[0] if len(numbers) == len(largest) == 1 else None
    if not isinstance(taken, Call) or function_named(taken) not in ("reduce_max", "max", "amax"):
        return False
    axis = known(taken.argument(1, "axis"))
    is_same_axis = along is None or (isinstance(axis, int) and known(along) == axis)
    return is_same_axis and any(option is numbers[0] for option in _opened(_first(taken)))


def _terms(value: Value) -> Iterator[Value]:
    """The terms of a sum, each once."""
    waiting, seen = [value], {id(value)}
    for part in waiting:
        if isinstance(part, Operation) and part.operator == "+" and len(part.operands) == 2:
            operands: tuple[Value, ...] = part.operands
        elif function_named(part) == "add" and isinstance(part, Call):
            operands = part.arguments(slice(2))
        else:
            yield part
            continue
        for operand in operands:
            choices = options(operand)
            term = choices[0] if len(choices) == 1 else operand
            if id(term) not in seen:
                seen.add(id(term))
                waiting.append(term)


def _bounds(value: Value, positions: dict[str, tuple[int, ...]]) -> Iterator[Value]:
    if not isinstance(value, Call):
        return
    for position in positions.get(function_named(value), ()):
        named = next((value.keyword(name) for name in _NAMES.get(position, ()) if value.keyword(name)), None)
        given = value.argument(position) or named
        if given is not None and numbers_from_value(given):
            yield given


def _opened(value: Value | None, depth: int = 0) -> Iterator[Value]:
    """The values that a value may be, with reshapes and the like taken off."""
    for option in options(value):
        if depth < 6 and isinstance(option, Item):
            yield from _opened(option.of, depth + 1)
        elif depth < 6 and function_named(option) in _PASSING[:-1]:
            yield from _opened(_first(option), depth + 1)
        elif not isinstance(option, Known):
            yield option


def _factors(value: Value, depth: int = 0) -> Iterator[Value]:
    """The factors of a divisor that is a product: each of them is divided by."""
    for part in _opened(value):
        if isinstance(part, Operation) and part.operator == "*" and len(part.operands) == 2 and depth < MOST_FACTORS:
            for operand in part.operands:
                yield from _factors(operand, depth + 1)
        else:
            yield part


def _is_root(value: Value) -> bool:
    if isinstance(value, Operation):
        return value.operator == "**" and known(value.operands[1]) == 0.5
    return function_named(value) == "sqrt"


def _first(value: Value) -> Value | None:
    if isinstance(value, Operation):
        return value.operands[0]
    if not isinstance(value, Call):
        return None
    return value.argument(0, "x") or value.keyword("input_tensor") or value.keyword("tensor")


def without_guard(divisor: ast.expr, number: Value, guarded: Value) -> ast.expr:
    """`norm` of `norm + 1e-8`, of `norm + self.eps` and of `tf.maximum(norm, 1e-8)`."""
    if isinstance(divisor, ast.BinOp) and isinstance(divisor.op, ast.Add):
        parts = [divisor.left, divisor.right]
    elif isinstance(divisor, ast.Call) and ast.unparse(divisor.func).rpartition(".")[2] == "maximum":
        parts = divisor.args
    else:
        return divisor
    values = _values_of(guarded) if len(_values_of(guarded)) == len(parts) else parts
    others = [
        part
        for part, value in zip(parts, values, strict=True)
        if not isinstance(part, ast.Constant) and not (isinstance(value, Value) and number in options(value))
    ]
    return others[0] if len(others) == 1 else divisor


def _values_of(guarded: Value) -> tuple[Value, ...]:
    """The operands of a sum, or the arguments of a maximum."""
    if isinstance(guarded, Operation):
        return guarded.operands
    return guarded.args if isinstance(guarded, Call) else ()
