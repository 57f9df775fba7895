"""The layers before another layer, in a functional model or in a Sequential, and the last one of a Sequential."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Collection, Value, agreed, options
from mpdoctor.semantics.source.programs.branches import depends_on_no_more, exclude_each_other

LONGEST = 200


def layers_of_sequential(facts: SourceFacts, model: Call) -> list[Value]:
    """The layers of a Sequential, in order; [] where that is not certain."""
    given = model.argument(0, "layers")
    if given is not None and (not isinstance(given, Collection) or given.open):
        return []
    layers = list(given.items) if isinstance(given, Collection) else []
    for add in facts.method_calls("add"):
        if any(option is model for option in options(add.receiver)):
            added = add.argument(0, "layer")
            if add.context.branches or add.context.loops or added is None:
                return []
            layers.append(added)
    return layers


def rows(facts: SourceFacts, last: str) -> Iterator[tuple[Call, list[Call]]]:
    """Every layer of this library class (`keras.layers.…`), with the layers before it from the Input on. Only where
    each of them is certain."""
    for call in facts.calls:
        if isinstance(call.callee, Call) and is_call_of(call.callee, last):
            before = _before(call.argument(0, "inputs"))
            if before:
                yield call.callee, before
    for model in facts.calls_of("keras.Sequential"):
        before = []
        for layer in layers_of_sequential(facts, model):
            if not isinstance(layer, Call):
                break
            if is_call_of(layer, last) and before:
                yield layer, list(before)
            before.append(layer)


def _before(tensor: Value | None) -> list[Call]:
    before: list[Call] = []
    while len(before) < LONGEST:
        if is_call_of(tensor, "keras.Input") and isinstance(tensor, Call):
            return [tensor, *reversed(before)]
        if not isinstance(tensor, Call) or not isinstance(tensor.callee, Call):
            return []
        before.append(tensor.callee)
        tensor = tensor.argument(0, "inputs")
    return []


def last_of_sequential(facts: SourceFacts, model: Call, given: Value | None) -> list[Call]:
    """The last layer, where the program compiles the model; several where an `add` below an `if` or in a loop may be
    the last. `given`: the list of layers with which it is made."""
    if any(call.receiver is model for call in facts.method_calls("pop")):
        return []
    adding = [call for call in facts.method_calls("add") if model in options(call.receiver)]
    adding.sort(key=lambda call: -call.order)
    compiling = [call for call in facts.method_calls("compile") if model in options(call.receiver)]
    if not compiling or any(add.order > compiling[-1].order for add in adding):
        return _last_at(model, given, adding, model.context)
    last = [_last_at(model, given, _added_before(call, adding), call.context) for call in compiling]
    return list(dict.fromkeys(layer for layers in last for layer in layers)) if all(last) else []


def _added_before(compiling: Call, adding: list[Call]) -> list[Call]:
    """The calls of `add` that may have come before the model is compiled here."""
    before = (add for add in adding if add.order < compiling.order)
    return [add for add in before if not exclude_each_other(add.context, compiling.context)]


def _last_at(model: Call, layers: Value | None, adding: list[Call], context: Context) -> list[Call]:
    """The layers that may be the last one in this context, of those that are added, the latest first. Of an `if` with
    several arms that add one, one arm was taken."""
    last: list[Call] = []
    behind: list[Call] = []
    for add in adding:
        if any(_always_follows(later.context, add.context) for later in behind):
            continue
        if _are_arms(behind) and not any(exclude_each_other(add.context, later.context) for later in behind):
            return last
        added = _all_calls(add.argument(0, "layer"))
        if added is None:
            return []
        last.extend(added)
        behind.append(add)
        is_certain = len(add.context.branches) <= len(model.context.branches) or depends_on_no_more(
            add.context, context
        )
        if is_certain and isinstance(add.receiver, Call):
            return last
    if layers is None:
        return [] if model.open else last
    given = _all_calls(_end_of_all(layers))
    return [] if given is None else last + given


def _always_follows(later: Context, earlier: Context) -> bool:
    return depends_on_no_more(later, earlier) and not exclude_each_other(later, earlier)


def _are_arms(adding: list[Call]) -> bool:
    """Whether two of these stand in different arms of one `if`."""
    return any(exclude_each_other(one.context, other.context) for one, other in combinations(adding, 2))


def _end_of_all(layers: Value) -> Value | None:
    """The last element of what may be one of several lists, as after a loop that may not run; None where they differ,
    or one does not tell."""
    return agreed(held.entry(-1) if isinstance(held, Collection) else None for held in options(layers))


def _all_calls(value: Value | None) -> list[Call] | None:
    """What a value may be, where all of it is the result of calls."""
    choices = options(value)
    calls = [choice for choice in choices if isinstance(choice, Call)]
    return calls if calls and len(calls) == len(choices) else None
