"""Small numbers that protect a division, a logarithm or a root from 0: `x / (norm + 1e-8)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeGuard

from mpdoctor.facts.half_dtypes import NO_RECIPROCAL, ROUNDED_TO_ZERO
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, is_api, known, options
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.numbers.sums_away_from_zero import stays_away_from_zero
from mpdoctor.semantics.source.operands.value_parts import first_argument, opened

DIVISOR, ROOT_DIVISOR, LOG, ROOT, RECIPROCAL_ROOT = "divisor", "divisor under a root", "log", "root", "reciprocal root"
ROOT_OF_POWERS = "root of powers"
# Whose gradient at 1 is infinite.
INVERSE = ("acos", "arccos", "asin", "arcsin")
ADDED, BOUND = "added", "bound"

_DIVIDING = ("divide", "truediv", "true_divide")
_OF_ONE = {"reciprocal": DIVISOR, "log": LOG, "sqrt": ROOT, "rsqrt": RECIPROCAL_ROOT}  # functions of one argument
_POWERS = ("pow", "power")
_EXPONENTS = {0.5: ROOT, -0.5: RECIPROCAL_ROOT, -1: DIVISOR}
_LOWER = {"maximum": (0, 1), "clip_by_value": (1,), "clip": (1,)}
_UPPER = {"minimum": (0, 1), "clip_by_value": (2,), "clip": (2,)}
_NAMES = {1: ("clip_value_min", "min_value", "x_min"), 2: ("clip_value_max", "max_value", "x_max")}
LEAST_OF_NOTE = 1e-4  # another constant from here on keeps the sum away from 0 by itself
MOST_FACTORS = 3
# Functions that divide by the size of their argument and add an epsilon to it themselves: the place, the name and the
# default of that, and up to which it protects against nothing. The bound of `normalize` is for the norm: its reciprocal
# must not be infinite.
NORMALIZING = {
    "l2_normalize": (2, "epsilon", 1e-12, ROUNDED_TO_ZERO),
    "normalize": (3, "epsilon", 1e-7, NO_RECIPROCAL),
    "batch_normalization": (5, "variance_epsilon", 1e-3, ROUNDED_TO_ZERO),
}
OF_BACKEND = "keras.backend.l2_normalize"
WITHOUT_EPSILON = "tensorflow.normalize"
User = Operation | Call


class Use(NamedTuple):
    """A value of which one number must not be reached: a divisor, or what a root or a logarithm is taken of.

    kind
        DIVISOR, LOG, ROOT, RECIPROCAL_ROOT, ROOT_OF_POWERS; of a guard also ROOT_DIVISOR, or the name of an inverse
        function.
    """

    kind: str
    value: Value
    user: User


class Guard(NamedTuple):
    """A small number that keeps a value away from 0, or from 1.

    kind
        How the guarded value is used, as in `Use`.
    way
        ADDED or BOUND.
    power
        To which the guarded value is raised before it is used.
    """

    kind: str
    way: str
    number: Value
    guarded: Value
    user: User
    power: float = 1.0


def guards(facts: SourceFacts) -> Iterator[Guard]:
    """Every number that keeps a divisor, a root or a logarithm away from 0."""
    for use in _uses(facts):
        if use.kind == ROOT_OF_POWERS:
            from mpdoctor.semantics.source.numbers.powers_in_means import powers_in_means

            for base, power in powers_in_means(use.value):
                yield from (guard._replace(power=power) for guard in _guards_in(ROOT_OF_POWERS, base, use.user))
            continue
        for part in _factors(use.value) if use.kind == DIVISOR else opened(use.value):
            if use.kind == DIVISOR and _is_root(part):
                yield from _guards_in(ROOT_DIVISOR, first_argument(part), use.user)
            yield from _guards_in(use.kind, part, use.user)


def divisors(facts: SourceFacts) -> Iterator[Value]:
    """Everything that is divided by; for `tf.math.rsqrt(x)` the value under the root."""
    return (use.value for use in _uses(facts) if use.kind in (DIVISOR, RECIPROCAL_ROOT))


def upper_bounds(facts: SourceFacts) -> Iterator[Guard]:
    """Every number that keeps a value p below 1 for `log(1 - p)`, a division by `1 - p` or `acos(p)`."""
    for call, name in functions_called(facts):
        if name in INVERSE:
            yield from _upper_bounds_of(first_argument(call), call.method, call)
    for use in _uses(facts):
        if use.kind in (LOG, DIVISOR):
            for part in opened(use.value):
                if _is_taken_from_one(part):
                    yield from _upper_bounds_of(part.operands[1], use.kind, use.user)


def _upper_bounds_of(value: Value | None, kind: str, user: User) -> Iterator[Guard]:
    for clipped in opened(value):
        for number in _bounds(clipped, _UPPER):
            yield Guard(kind, BOUND, number, clipped, user)


def _is_taken_from_one(value: Value) -> TypeGuard[Operation]:
    """Whether it is `1 - p`."""
    if not isinstance(value, Operation) or value.operator != "-" or len(value.operands) != 2:
        return False
    return known(value.operands[0]) in (1, 1.0)


@lru_cache(maxsize=1)
def _uses(facts: SourceFacts) -> tuple[Use, ...]:
    in_operations = map(_use_in_operation, facts.operations)
    in_calls = (_use_in_call(call, name) for call, name in functions_called(facts))
    return tuple(use for use in (*in_operations, *in_calls) if use is not None)


def _use_in_operation(operation: Operation) -> Use | None:
    if len(operation.operands) != 2:
        return None
    if operation.operator == "/":
        return Use(DIVISOR, operation.operands[1], operation)
    kind = _kind_of_power(operation.operands[1]) if operation.operator == "**" else None
    return Use(kind, operation.operands[0], operation) if kind is not None else None


def _use_in_call(call: Call, name: str) -> Use | None:
    if name in _POWERS:
        kind = _kind_of_power(call.argument(1, "y"))
        return Use(kind, call.argument(0, "x") or call, call) if kind is not None else None
    if name in _DIVIDING:
        kind, value = DIVISOR, call.argument(1)
    else:
        kind, value = _OF_ONE.get(name), first_argument(call) if name in _OF_ONE else None
    return Use(kind, value, call) if kind is not None and value is not None else None


def same_added_above(number: Value, quotient: User) -> Value | None:
    """The term of a dividend that is the number which is added to the divisor as well: `(2 * both + 1e-7) / (sum +
    1e-7)`. None where the dividend has no such term."""
    dividend = quotient.argument(0, "x") if isinstance(quotient, Call) else quotient.operands[0]
    numbers = set(numbers_from_value(number))
    terms = (term for part in opened(dividend) for term in _terms(part) if term is not part)
    return next((term for term in terms if set(numbers_from_value(term)) == numbers), None)


def is_number_divided(quotient: User) -> bool:
    """Whether the dividend is a number, as in `1 / x`."""
    return isinstance(quotient, Operation) and bool(numbers_from_value(quotient.operands[0]))


def has_logarithm_taken(facts: SourceFacts, quotient: User) -> bool:
    """Whether the program takes the logarithm of this quotient."""
    logarithms = (call for call, name in functions_called(facts) if name == "log")
    return any(option is quotient for call in logarithms for option in options(call.argument(0, "x")))


def _kind_of_power(exponent: Value | None) -> str | None:
    """How a power with this exponent uses its base: as a divisor or under a root; None for others."""
    number = known(exponent)
    kind = _EXPONENTS.get(number) if isinstance(number, (int, float)) else None
    if kind is not None or isinstance(number, int):
        return kind
    from mpdoctor.semantics.source.numbers.powers_in_means import is_root  # few programs take roots of a degree

    return ROOT_OF_POWERS if is_root(exponent) else None


def _guards_in(kind: str, value: Value | None, user: User) -> Iterator[Guard]:
    """The small numbers that keep a value away from 0: a lower bound of it, or a term that is added to it."""
    for part in opened(value):
        if function_named(part) == "cast":
            yield from _lost_in_cast(kind, part, user)
        for number in _bounds(part, _LOWER):
            if not any(stays_away_from_zero(given) for given in _values_of(part) if given is not number):
                yield Guard(kind, BOUND, number, part, user)
        terms = list(_terms(part))
        small = [term for term in terms if 0 < max(numbers_from_value(term), default=0) < LEAST_OF_NOTE]
        others = [term for term in terms if term not in small]
        if len(small) != 1 or not others or any(map(stays_away_from_zero, others)):
            continue
        if not any(numbers_from_value(term) for term in others):
            yield Guard(kind, ADDED, small[0], part, user)


def _lost_in_cast(kind: str, cast: Value, user: User) -> Iterator[Guard]:
    """The numbers that keep a value from 0 before it is cast, as in `tf.cast(tf.maximum(norm, 1e-12), x.dtype)`, and
    that float16 rounds to 0."""
    for guard in _guards_in(kind, first_argument(cast), user):
        if max(numbers_from_value(guard.number)) <= ROUNDED_TO_ZERO:
            yield guard._replace(guarded=cast)


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


def _factors(value: Value, depth: int = 0) -> Iterator[Value]:
    """The factors of a divisor that is a product: each of them is divided by."""
    for part in opened(value):
        if isinstance(part, Operation) and part.operator == "*" and len(part.operands) == 2 and depth < MOST_FACTORS:
            for operand in part.operands:
                yield from _factors(operand, depth + 1)
        else:
            yield part


def _is_root(value: Value) -> bool:
    if isinstance(value, Operation):
        return value.operator == "**" and known(value.operands[1]) == 0.5
    return function_named(value) == "sqrt"


def without_guard(divisor: ast.expr, guard: Guard) -> ast.expr:
    """`norm` of `norm + 1e-8`, of `norm + self.eps` and of `tf.maximum(norm, 1e-8)`."""
    if isinstance(divisor, ast.BinOp) and isinstance(divisor.op, ast.Add):
        parts = [divisor.left, divisor.right]
    elif isinstance(divisor, ast.Call) and ast.unparse(divisor.func).rpartition(".")[2] == "maximum":
        parts = divisor.args
    else:
        return divisor
    values = _values_of(guard.guarded)
    pairs = zip(parts, values, strict=True) if len(values) == len(parts) else ()
    numbers = [part for part, value in pairs if guard.number is value or guard.number in options(value)]
    others = [part for part in parts if not isinstance(part, ast.Constant) and part not in numbers]
    return others[0] if len(others) == 1 else divisor


def _values_of(guarded: Value) -> tuple[Value, ...]:
    """The operands of a sum, or the arguments of a maximum."""
    if isinstance(guarded, Operation):
        return guarded.operands
    return guarded.args if isinstance(guarded, Call) else ()


def adds_epsilon(call: Call, name: str) -> bool:
    """Whether it adds its epsilon to a sum of squares: `ops.normalize` does unless it is given another order, and
    `tf.linalg.normalize` has none, in float32 either."""
    if is_api(call.callee, WITHOUT_EPSILON):
        return False
    order = call.argument(2, "order") if name == "normalize" else None
    return order is None or known(order) == 2
