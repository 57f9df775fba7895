"""Variables in which a loop adds up gradients: whether those are scaled, and the variables new in each step or set back
to zero."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.knowledge.layer_kinds import WEIGHT_LISTS
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Item, Value, walk
from mpdoctor.semantics.source.layers.layer_variables import ASSIGNING
from mpdoctor.semantics.source.loops.clipping import is_divided_by_its_size
from mpdoctor.semantics.source.loops.gradients import (
    TRANSPARENT_ROOTS,
    UNSCALING,
    given_to,
    is_gradient_call,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.scaling import divided_by_scale, is_of_scaled_loss
from mpdoctor.semantics.source.programs.attribute_access import same_object

# Functions whose result does not change when their argument is multiplied by a number.
AT_ANY_SCALE = (
    *("zeros_like", "ones_like", "shape", "size", "rank", "sign", "argmax", "argmin", "argsort", "count_nonzero"),
    *("is_finite", "is_inf", "is_nan", "isfinite", "isinf", "isnan", "l2_normalize", "normalize"),
)
OF_NO_SCALE = ("indices", "dense_shape", "shape", "dtype")  # attributes of a gradient, of a table's rows as well
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
    holders = []
    while isinstance(variable, (Item, Call, Attribute, Collection)):
        holders.append(variable)
        if not isinstance(variable, Item):
            return tuple(holders)
        variable = variable.of
    return ()


def are_weights(holders: tuple[Value, ...]) -> bool:
    """Whether one of these is a model's list of weights, which stand beside the gradients that are applied."""
    return any(isinstance(holder, Attribute) and holder.name in WEIGHT_LISTS for holder in holders)


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


def scaled_gradients_given(facts: SourceFacts, call: Call) -> Iterator[Call]:
    """The gradients of a scaled loss that a variable is given without unscaling."""
    given = call.argument(0, "delta")
    for part in until_gradients(given, _holds_no_scaled) if given in _made_of_gradients(facts) else ():
        if isinstance(part, Call) and is_gradient_call(part) and is_of_scaled_loss(facts, part):
            yield part


def gradients_kept_until(facts: SourceFacts, apply: Call) -> Iterator[tuple[Call, Call]]:
    """The gradients that variables are given which this call applies, each with the call of `assign…`."""
    for kept in facts.method_calls("assign_add", "assign"):
        given, holders = kept.argument(0, "delta") or kept.keyword("value"), holders_of(kept.receiver)
        if not holders or are_weights(holders) or given not in _made_of_gradients(facts):
            continue
        if is_made_from(given_to(apply), holders):
            yield from (
                (kept, part) for part in until_gradients(given) if isinstance(part, Call) and is_gradient_call(part)
            )


@lru_cache(maxsize=1)
def _made_of_gradients(facts: SourceFacts) -> frozenset[Value | None]:
    """The values that are made of a tape's gradients, among what `assign…` is given and all that this is made of. Each
    is gone through once: a moving average of all weights assigns as many values as there are weights."""
    waiting = [given for call in facts.method_calls(*ASSIGNING) if (given := call.argument(0, "delta")) is not None]
    seen, makes = set(waiting), dict[Value, list[Value]]()
    for value in waiting:
        for part in value.parts:
            makes.setdefault(part, []).append(value)
            if part not in seen:
                seen.add(part)
                waiting.append(part)
    made = [value for value in seen if is_gradient_call(value)]
    values: set[Value | None] = set(made)
    for value in made:
        further = [whole for whole in makes.get(value, ()) if whole not in values]
        made += further
        values.update(further)
    return frozenset(values)


def _holds_no_scaled(value: Value) -> bool:
    """Whether it is made of gradients and is independent of their scale."""
    if isinstance(value, Attribute):
        return value.name in OF_NO_SCALE
    is_same = isinstance(value, Call) and value.method in AT_ANY_SCALE
    return is_same or unscales(value) or divided_by_scale(value) or is_divided_by_its_size(value)
