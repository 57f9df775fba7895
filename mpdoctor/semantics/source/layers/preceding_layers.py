"""The layers before another layer, in a functional model or in a Sequential."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Collection, Value, options

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
