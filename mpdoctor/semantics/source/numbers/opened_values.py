"""What a reshaped, stopped or unpacked value is made of: its numbers are the same."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Item, Known, Value, options
from mpdoctor.semantics.source.function_names import function_named

PASSING = ("reshape", "expand_dims", "squeeze", "identity", "stop_gradient", "transpose")


def opened(value: Value | None, depth: int = 0) -> Iterator[Value]:
    """The values that a value may be, with reshapes and the like taken off."""
    for option in options(value):
        if depth < 6 and isinstance(option, Item):
            yield from opened(option.of, depth + 1)
        elif depth < 6 and function_named(option) in PASSING:
            yield from opened(first_argument(option), depth + 1)
        elif not isinstance(option, Known):
            yield option


def first_argument(value: Value) -> Value | None:
    """The first operand of an operation, or the first argument of a call; None where there is none."""
    if isinstance(value, Operation):
        return value.operands[0]
    if not isinstance(value, Call):
        return None
    return value.argument(0, "x") or value.keyword("input_tensor") or value.keyword("tensor")
