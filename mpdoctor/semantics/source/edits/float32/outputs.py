"""Edits that compute a model's output in float32: its last layer, and the layers whose numbers that one only passes
on."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Edit
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, leaves
from mpdoctor.semantics.source.edits.given_dtypes import in_float32
from mpdoctor.semantics.source.layers.output_dtypes import hands_on
from mpdoctor.semantics.source.layers.output_layers import output_layers
from mpdoctor.semantics.source.layers.preceding_layers import layers_of_sequential

MOST_STEPS = 8


def output_in_float32(facts: SourceFacts, layer: Call) -> list[Edit] | None:
    """The edits after which the model's output is float32. None where it is not certain which layer computes the
    numbers that others pass on."""
    layers = list(_back_to_the_computing(facts, layer))
    edits = [in_float32(facts, made) if made is not None else None for made in layers]
    outputs = [edit for edit in dict.fromkeys(edits) if edit is not None]
    return outputs if None not in edits else None


def _back_to_the_computing(facts: SourceFacts, layer: Call, steps: int = 0) -> Iterator[Call | None]:
    yield layer
    if not hands_on(layer):
        return
    before = _before(facts, layer) if steps < MOST_STEPS else []
    if not before:
        yield None
    for other in before:
        if other is None:
            yield None
        else:
            yield from _back_to_the_computing(facts, other, steps + 1)


def _before(facts: SourceFacts, layer: Call) -> list[Call | None]:
    """The layers whose outputs it is given; [] where they are not known."""
    applied = [call for call in facts.calls if call.callee is layer]
    if len(applied) == 1:
        return [made for tensor in leaves(applied[0].argument(0, "inputs")) for made in _behind(facts, tensor)]
    held = (layers_of_sequential(facts, model) for model in facts.calls_of("keras.Sequential"))
    places = [(layers, layers.index(layer)) for layers in held if not applied and layer in layers]
    if len(places) != 1 or places[0][1] == 0:
        return []
    before = places[0][0][places[0][1] - 1]
    return list(_last_layers(facts, before)) if isinstance(before, Call) else []


def _behind(facts: SourceFacts, tensor: Value | None) -> list[Call | None]:
    made = tensor.callee if isinstance(tensor, Call) else None
    if not isinstance(made, Call):
        return [None]
    return list(_last_layers(facts, made))


def _last_layers(facts: SourceFacts, made: Call) -> Iterator[Call | None]:
    """The layer itself, or the last ones of a model."""
    own = class_of(made)
    if is_call_of(made, "keras.Sequential", "keras.Model") or (own is not None and own.kind == "model"):
        last: list[Call | None] = [*output_layers(facts, made)]
        yield from last or [None]
    else:
        yield made
