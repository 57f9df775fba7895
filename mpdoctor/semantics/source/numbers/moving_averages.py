"""Moving averages that a variable keeps, `v = decay * v + (1 - decay) * x`, how far one gets in 16 bits, and what
else of a program computes the next value of a variable from its last."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeGuard

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, is_api, options
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.numbers.constants import CASTS, numbers_from_value

_SAME = (*CASTS, "tensorflow.identity", "tensorflow.convert_to_tensor", "keras.ops.convert_to_tensor")
_UPDATES = ("assign", "assign_add", "assign_sub")
_REDUCING = ("reduce_sum", "reduce_mean", "sum", "mean")
_READS = ("value", "read_value", "astype", "numpy")
MOST_FACTORS = 16
_NEAR = 1e-3  # as far as a written 1 - decay may be from it, relatively


class MovingAverage(NamedTuple):
    """`variable`: what makes it; `update`: the call that assigns the next value; `decay`: of the old value."""

    variable: Call
    update: Call
    decay: float


def moving_averages(facts: SourceFacts) -> Iterator[MovingAverage]:
    for update in facts.method_calls(*_UPDATES):
        value = update.argument(0)
        variable = update.receiver
        decay = _DECAYS[update.method](value, variable) if value is not None and variable is not None else None
        if decay is not None and isinstance(variable, Call):
            yield MovingAverage(variable, update, decay)


def end_for_ones(decay: float, dtype: str) -> float:
    """The value at which the moving average of ones that starts at 0 stops (1 but for rounding), with each step rounded
    to "float16" or "bfloat16", to nearest even. TensorFlow 2.21 on a CPU gives the same numbers."""
    rounded = _ROUNDED[dtype]
    old_part, new_part = rounded(decay), rounded(1 - decay)
    average, before = new_part, 0.0
    while average > before:
        average, before = rounded(rounded(old_part * average) + new_part), average
    return before


def updates_a_variable(facts: SourceFacts, event: Call | Operation) -> bool:
    """Whether it is a part of an expression that computes the next value of a variable from its last one."""
    return id(event) in _parts_of_updates(facts)


@lru_cache(maxsize=1)
def _parts_of_updates(facts: SourceFacts) -> frozenset[int]:
    """The ids of the events that are parts of such expressions."""
    found: set[int] = set()
    for update in facts.method_calls(*_UPDATES):
        parts, variable = list(parts_of_sum(update.argument(0))), update.receiver
        if variable is not None and any(part is variable or _is_read_of(part, variable) for part in parts):
            found.update(id(part) for part in parts)
    return frozenset(found)


def _is_read_of(value: Value, variable: Value) -> bool:
    """Whether it is `variable.read_value()` or the like; the casts around it are parts of the sum."""
    return isinstance(value, Call) and value.method in _READS and any(o is variable for o in options(value.receiver))


def parts_of_sum(value: Value | None) -> Iterator[Value]:
    """The value and what it is computed from by the four operators, by sums and means, and by casts, each once."""
    waiting: list[Value] = list(options(value))
    seen = {id(option) for option in waiting}
    for part in waiting:
        yield part
        operands: tuple[Value, ...] = ()
        if isinstance(part, Operation) and part.operator in ("+", "-", "*", "/"):
            operands = part.operands
        elif isinstance(part, Call) and (is_api(part.callee, *_SAME) or function_named(part) in _REDUCING):
            operands = part.arguments(slice(1))
        for option in (option for operand in operands for option in options(operand)):
            if id(option) not in seen:
                seen.add(id(option))
                waiting.append(option)


def _decay_of_assigned(value: Value, variable: Value) -> float | None:
    if not isinstance(value, Operation) or len(value.operands) != 2:
        return None
    one, other = value.operands
    if value.operator == "-":
        return _decay_of_subtracted(other, variable) if _reads(one, variable) else None
    if value.operator != "+":
        return None
    for old, new in ((one, other), (other, one)):
        if _number(new) is not None:
            return _decay_of_assigned(old, variable)  # AdaBelief adds its epsilon to the average itself
        decay = _decay_of_added(new, variable) if _reads(old, variable) else _decay_of_parts(old, new, variable)
        if decay is not None:
            return decay
    return None


def _decay_of_parts(old: Value, new: Value, variable: Value) -> float | None:
    """The decay in `decay * v` and `(1 - decay) * x`; None for other values."""
    factors = _factors(old)
    decay = _one_number([factor for factor in factors if not _reads(factor, variable)])
    if len(factors) != 2 or decay is None or not any(_reads(factor, variable) for factor in factors):
        return None
    rest = [number for factor in _factors(new) for number in [_number(factor)] if number is not None]
    return decay if 0 < decay < 1 and len(rest) == 1 and abs(rest[0] - (1 - decay)) <= _NEAR * (1 - decay) else None


def _decay_of_added(step: Value, variable: Value) -> float | None:
    """The decay in `(1 - decay) * (x - v)`; None for other values."""
    return _decay_of_step(step, lambda difference: _reads(difference.operands[1], variable))


def _decay_of_subtracted(step: Value, variable: Value) -> float | None:
    """The decay in `(1 - decay) * (v - x)`; None for other values."""
    return _decay_of_step(step, lambda difference: _reads(difference.operands[0], variable))


def _decay_of_step(step: Value, is_meant: Callable[[Operation], bool]) -> float | None:
    factors = _factors(step)
    meant = [factor for factor in factors if _is_difference(factor) and is_meant(factor)]
    share = _one_number([factor for factor in factors if factor not in meant])
    return 1 - share if len(factors) == 2 and len(meant) == 1 and share is not None and 0 < share < 1 else None


def _is_difference(value: Value) -> TypeGuard[Operation]:
    return isinstance(value, Operation) and value.operator == "-" and len(value.operands) == 2


_DECAYS = {"assign": _decay_of_assigned, "assign_add": _decay_of_added, "assign_sub": _decay_of_subtracted}


def _factors(value: Value) -> list[Value]:
    """The factors of a product, in their order; [] for more than MOST_FACTORS, which are no average's: a product that
    is multiplied with itself again and again has twice as many each time."""
    factors: list[Value] = []
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if not (isinstance(part, Operation) and part.operator == "*"):
            factors.append(part)
        elif len(factors) + len(waiting) < MOST_FACTORS:
            waiting += reversed(part.operands)
        else:
            return []
    return factors


def _one_number(factors: list[Value]) -> float | None:
    return _number(factors[0]) if len(factors) == 1 else None


def _number(value: Value) -> float | None:
    """A number that is written out, or 1 less such a number."""
    numbers = numbers_from_value(value)
    if len(numbers) == 1:
        return numbers[0]
    if isinstance(value, Operation) and value.operator == "-" and len(value.operands) == 2:
        whole, part = (numbers_from_value(operand) for operand in value.operands)
        return 1 - part[0] if whole == (1.0,) and len(part) == 1 else None
    return None


def _reads(value: Value, variable: Value) -> bool:
    """Whether it is the variable's value, perhaps in another dtype."""
    if any(option is variable for option in options(value)):
        return True
    if not isinstance(value, Call):
        return False
    receiver = value.receiver if value.method in _READS else None
    read = value.argument(0) if is_api(value.callee, *_SAME) else receiver
    return read is not None and _reads(read, variable)


def _to_float16(number: float) -> float:
    (rounded,) = struct.unpack("<e", struct.pack("<e", number))
    return float(rounded)


def _to_bfloat16(number: float) -> float:
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    even = bits + 0x7FFF + (bits >> 16 & 1)
    (rounded,) = struct.unpack("<f", struct.pack("<I", even & 0xFFFF0000))
    return float(rounded)


_ROUNDED: dict[str, Callable[[float], float]] = {"float16": _to_float16, "bfloat16": _to_bfloat16}
