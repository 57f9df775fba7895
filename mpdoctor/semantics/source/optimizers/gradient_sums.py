"""Variables in which a loop adds up gradients: whether they are new in each step, or set back to zero."""

from __future__ import annotations

from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Item, Value, walk
from mpdoctor.semantics.source.optimizers.attribute_access import same_object
from mpdoctor.semantics.source.optimizers.gradients import TRANSPARENT_ROOTS, UNSCALING

HANDED_ON = (*APPLYING, UNSCALING, "build", "append", "all_reduce")  # methods that do not change variables


def are_new(holders: tuple[Value, ...], apply: Call) -> bool:
    """Whether new variables are made each time before they are applied. A list of them is filled in its own loop."""
    filling = int(isinstance(holders[-1], Collection) and holders[-1].open)
    made = [call.context for call in walk(holders[-1]) if isinstance(call, Call)]
    depth = len(apply.context.callers)
    return any(
        context.run == apply.context.run
        and context.callers[:depth] == apply.context.callers
        and context.loops - max(filling, context.comprehensions) >= apply.context.loops
        for context in made
    )


def holders_of(variable: Value | None) -> tuple[Value, ...]:
    """The values that hold a variable: itself, and the list that it is an item of. () for an argument, which the caller
    may set back to zero."""
    found = []
    while isinstance(variable, (Item, Call, Attribute, Collection)):
        found.append(variable)
        if not isinstance(variable, Item):
            return tuple(found)
        variable = variable.of
    return ()


def adds_up(kept: Call, holders: tuple[Value, ...]) -> bool:
    """Whether a call of `assign…` adds to what the variables hold already."""
    return kept.method != "assign" or is_made_from(kept.argument(0), holders)


def is_made_from(value: Value | None, holders: tuple[Value, ...]) -> bool:
    """Whether a value is computed from what one of these holds."""
    return any(part is holder or _same_attribute(part, holder) for part in walk(value) for holder in holders)


def _same_attribute(one: Value, other: Value) -> bool:
    return isinstance(one, Attribute) and isinstance(other, Attribute) and same_object(one, other)


def may_be_set_back(facts: SourceFacts, holders: tuple[Value, ...], kept: Call) -> bool:
    """Whether anything else may change the variables: another assignment, or a function that they are passed to."""
    for call in facts.calls:
        if call.location == kept.location:
            continue
        if call.method.startswith("assign") and is_made_from(call.receiver, holders):
            return True
        is_library = isinstance(call.callee, Api) and call.callee.root in TRANSPARENT_ROOTS
        is_known = is_library or _runs(call, kept.context.function)
        if not is_known and call.method not in HANDED_ON and any(is_made_from(value, holders) for value in call.given):
            return True
    return any(is_made_from(write.of, holders) for write in facts.writes)


def _runs(call: Call, function: FunctionFacts | None) -> bool:
    """Whether it calls the function in which the variables are changed: what that does has been looked at."""
    return function is not None and isinstance(call.callee, Defined) and call.callee.of is function
