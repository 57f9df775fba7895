"""What a value is made of: the one whose numbers it has in another shape, and those whose dtype it has."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.dtypes.result_dtypes import JOINING, KEEPING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Api, Collection, Item, Known, Value, options
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


def values_kept(value: Value) -> tuple[Value, ...]:
    """The values whose dtype a value has: what a collection holds, and the argument of a function that keeps dtypes."""
    if isinstance(value, (Item, Collection)):
        return value.parts
    keeps = isinstance(value, Call) and isinstance(value.callee, Api) and value.method in KEEPING
    return value.arguments(slice(1)) if keeps and isinstance(value, Call) else ()


def values_joined(value: Value) -> tuple[Value, ...]:
    """The tensors that meet in a function of a library's, and whose dtype it has; () for anything else."""
    joins = isinstance(value, Call) and isinstance(value.callee, Api) and value.method in JOINING
    return value.arguments(JOINING[value.method]) if joins and isinstance(value, Call) else ()
