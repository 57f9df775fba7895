"""Which values are combined with another one by an operation, also through functions that keep their dtype."""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.knowledge.dtypes.result_dtypes import JOINING, KEEPING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Item, Value, options
from mpdoctor.semantics.source.layers.casts import is_cast
from mpdoctor.semantics.source.layers.mixed_operands import mixed_operands


def deciding_parts(value: Value) -> list[Value]:
    """The parts of a value that decide its dtype, as far as the nearest casts."""
    waiting, seen = [*options(value)], set[int]()
    for part in waiting:
        if id(part) not in seen and not is_cast(part):
            inner = part.operands if isinstance(part, Operation) else values_kept(part)
            waiting += [choice for held in inner for choice in options(held)]
        seen.add(id(part))
    return waiting


@lru_cache(maxsize=1)
def combined_ids(facts: SourceFacts) -> frozenset[int]:
    """The ids of the values that are operands of an operation, directly or through a function that keeps their
    dtype."""
    waiting = [operand for operation in facts.operations for operand in operation.operands]
    waiting += [operand for call in facts.calls for operand in values_joined(call)]
    waiting += [operand for _, operands in mixed_operands(facts) for operand in operands]
    ids: set[int] = set()
    for value in waiting:
        for option in options(value):
            if id(option) not in ids:
                ids.add(id(option))
                waiting += values_kept(option)
    return frozenset(ids)


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
