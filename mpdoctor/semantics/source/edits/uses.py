"""Whether what an expression gives may have another dtype afterwards, without meeting anything that has the old one."""

from __future__ import annotations

from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Call, Collection, Known, Operation, Value, options, walk

_CASTS = ("cast", "print", "shape")
_COMPUTING = ("tensorflow.", "keras.ops.", "keras.backend.")


def meets_others(facts: SourceFacts, value: Value) -> bool:
    """Whether the program computes with it, or with what is made of it, and another tensor at once."""
    events: tuple[Call | Operation, ...] = (*facts.operations, *facts.library_calls)
    for event in events:
        if event is value or (isinstance(event, Call) and not _computes(event)):
            continue
        parts = _operands(event)
        mine = [part for part in parts if any(one is value for one in walk(part))]
        if mine and any(not _is_plain(part) for part in parts if part not in mine):
            return True
    return False


def _computes(call: Call) -> bool:
    callee = call.callee
    return isinstance(callee, Api) and callee.name.startswith(_COMPUTING) and call.method not in _CASTS


def _operands(event: Call | Operation) -> list[Value]:
    given = event.operands if isinstance(event, Operation) else event.given
    spread = (part for one in given for option in options(one) for part in _spread(option))
    return list(spread)


def _spread(value: Value) -> tuple[Value, ...]:
    """A tensor itself; of a list of them each."""
    if not isinstance(value, Collection):
        return (value,)
    return tuple(option for item in value.items for option in options(item))


def _is_plain(value: Value) -> bool:
    """A number, a text, a library's name, and what is made of these alone."""
    return all(isinstance(part, (Known, Api, Operation, Collection)) for part in walk(value))
