"""What a program does with a value: whether it may get another dtype without meeting a tensor of the old one, and
whether it is only divided."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.python_numbers import is_number
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Item, Known, Value, options, walk
from mpdoctor.semantics.source.function_names import function_named

MOST_USES, MOST_PARTS = 500, 100  # that are looked at: behind that a value counts as met, and as a tensor
MOST_SHAPES = 20  # of a value that are followed
SHAPING = ("reshape", "expand_dims", "squeeze", "identity", "tile", "transpose", "broadcast_to", "stop_gradient")
_CASTS = ("cast", "print", "shape")
_COMPUTING = ("tensorflow.", "keras.ops.", "keras.backend.")


def meets_others(facts: SourceFacts, value: Value) -> bool:
    """Whether the program computes with it, or with what is made of it, and another tensor at once."""
    return _meets(facts, value, lambda part: not _is_plain(part), {id(value)})


def meets_float32_elsewhere(facts: SourceFacts, value: Value, event: Call | Operation) -> bool:
    """Whether the value, or what is made of it, is combined with another float32 tensor than in this event: that one
    needs it in float32."""
    return _meets(
        facts, value, lambda part: facts.dtype_of(part) == "float32" and not is_array(part), {id(value), id(event)}
    )


def is_only_divided(facts: SourceFacts, value: Value) -> bool:
    """Whether the program does nothing with it, or with other shapes of it, but divide it by a number."""
    waiting, users = [value], _users(facts)
    for item in waiting:
        used_by = users.get(id(item), [])
        if not used_by or len(waiting) > MOST_SHAPES:
            return False
        for user in used_by:
            if isinstance(user, Item) or function_named(user) in SHAPING:
                waiting.append(user)
            elif not _is_fraction_of(user, item):
                return False
    return True


def _is_fraction_of(quotient: Value, value: Value) -> bool:
    if not isinstance(quotient, Operation) or quotient.operator != "/":
        return False
    return quotient.operands[0] is value and is_number(quotient.operands[-1])


def _meets(facts: SourceFacts, value: Value, is_met: Callable[[Value], bool], made_of_it: set[int]) -> bool:
    """Whether the value, or what is made of it, is combined with something for which `is_met` holds; also where there
    are too many uses to look at. `made_of_it`: the ids of the value, and of what is made of it and not to be looked
    at."""
    waiting, users = [value], _users(facts)
    for item in waiting:
        if item is not value and _computes(item):
            parts = _operands(item)
            if any(id(part) not in made_of_it and is_met(part) for part in parts):
                return True
        for user in users.get(id(item), ()):
            if id(user) not in made_of_it:
                made_of_it.add(id(user))
                waiting.append(user)
        if len(waiting) > MOST_USES:
            return True
    return False


@lru_cache(maxsize=1)
def _users(facts: SourceFacts) -> dict[int, list[Value]]:
    """The values that are computed directly from each value, by its id, for all that events compute with or return."""
    users: dict[int, list[Value]] = {}
    seen: set[int] = set()
    waiting: list[Value] = [*facts.operations, *facts.calls, *(event.value for event in facts.returns)]
    while waiting:
        user = waiting.pop()
        if id(user) in seen:
            continue
        seen.add(id(user))
        for part in user.parts:
            users.setdefault(id(part), []).append(user)
            waiting.append(part)
    return users


def _computes(value: Value) -> bool:
    if isinstance(value, Operation):
        return True
    callee = value.callee if isinstance(value, Call) else None
    return (
        isinstance(callee, Api) and callee.name.startswith(_COMPUTING) and callee.name.rpartition(".")[2] not in _CASTS
    )


def _operands(event: Value) -> list[Value]:
    given = event.operands if isinstance(event, Operation) else event.given if isinstance(event, Call) else ()
    return [part for item in given for option in options(item) for part in _spread(option)]


def _spread(value: Value) -> tuple[Value, ...]:
    """A tensor itself; of a list of them each."""
    if not isinstance(value, Collection):
        return (value,)
    return tuple(option for item in value.items for option in options(item))


def _is_plain(value: Value) -> bool:
    """Whether it is a number, a text, a library's name, or made of these alone."""
    for number, part in enumerate(walk(value)):
        if number > MOST_PARTS or not isinstance(part, (Known, Api, Operation, Collection)):
            return False
    return True
