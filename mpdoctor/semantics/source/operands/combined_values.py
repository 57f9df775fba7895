"""Which values are combined with another one by an operation, also through functions that keep their dtype, and which
casts decide the dtypes there."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.program.dtypes.python_numbers import is_number
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.source.operands.casts import is_cast
from mpdoctor.semantics.source.operands.dtype_mismatches import dtype_mismatches
from mpdoctor.semantics.source.operands.float32_meetings import float32_meetings
from mpdoctor.semantics.source.operands.mixed_operands import MixedOperands, is_half, may_raise, mixed_operands
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


def casts_to_half(facts: SourceFacts, value: Value) -> list[Call]:
    """The casts that give a tensor its 16 bits by name; none where a policy may."""
    if facts.dtype_of(value) not in HALF:
        return []
    return [part for part in deciding_parts(value) if isinstance(part, Call) and is_cast(part)]


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


def meets_what_no_cast_decides(facts: SourceFacts, call: Call) -> bool:
    """Whether its result is seen to be combined with a tensor whose dtype no cast by name decides: that raises under
    another policy. Two tensors that are both cast by name, and a result that is returned, go on as they are."""
    for met, parts in _meetings_by_part(facts).get(id(call), ()):
        others = (part for part in parts if facts.dtype_of(part) not in HALF and not is_number(part))
        if any(True for _ in others) and may_raise(facts, met):
            return True
    return False


@lru_cache(maxsize=1)
def _meetings_by_part(facts: SourceFacts) -> dict[int, list[tuple[MixedOperands, list[Value]]]]:
    """The operations whose dtypes must agree and in which a call decides that of an operand, each with all that decides
    the dtypes there, by the call's identity."""
    found: dict[int, list[tuple[MixedOperands, list[Value]]]] = defaultdict(list)
    for met in mixed_operands(facts):
        parts = [part for operand in met[1] for part in deciding_parts(operand)]
        for part in {id(part): part for part in parts if isinstance(part, Call)}.values():
            found[id(part)].append((met, parts))
    return found


def parts_that_meet_float32(facts: SourceFacts) -> set[int]:
    """Ids of what gives a tensor its 16 bits where this meets one that is float32 under every policy (MP202, and in a
    loss or metric MP505 and MP508): a cast among them works under none."""
    halves = [
        operand
        for event, operands, *_ in float32_meetings(facts)
        for operand in operands
        if is_half(facts, operand, event.context)
    ]
    halves += [mismatch.half for mismatch in dtype_mismatches(facts)]
    return {id(part) for half in halves for part in deciding_parts(half)}
