"""Which values are combined with another one by an operation, also through functions that keep their dtype."""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.program.events import Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.source.operands.casts import is_cast
from mpdoctor.semantics.source.operands.mixed_operands import mixed_operands
from mpdoctor.semantics.source.operands.value_parts import values_joined, values_kept


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
