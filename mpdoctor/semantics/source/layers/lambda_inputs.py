"""Which functions Lambda layers call, and what they are given: floats, which Keras casts, or whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.knowledge.dtypes.result_dtypes import KEEPING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Item, Value, options
from mpdoctor.semantics.source.layers.call_dtypes import lambda_layers

WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
MOST_PARTS = 30  # of an input that are looked at


@lru_cache(maxsize=1)
def lambda_layers_by_function(facts: SourceFacts) -> dict[int, tuple[Call, ...]]:
    """The Lambda layers that call each function of the user's, by its id; without those that are given whole
    numbers."""
    whole = {id(layer) for call, layer in _calls_of_lambda_layers(facts) if _holds_whole_numbers(facts, call)}
    layers: dict[int, tuple[Call, ...]] = {}
    for function, layer in lambda_layers(facts):
        if id(layer) not in whole:
            layers[function] = (*layers.get(function, ()), layer)
    return layers


def _calls_of_lambda_layers(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    for call in facts.object_calls:
        for layer in options(call.callee):
            if isinstance(layer, Call) and is_call_of(layer, "keras.layers.Lambda"):
                yield call, layer


def _holds_whole_numbers(facts: SourceFacts, call: Call) -> bool:
    """Whether whole numbers are among what a layer is given, as they are or as other Lambda layers hand them on."""
    waiting = list(options(call.argument(0, "inputs")))
    for part in waiting:  # which grows
        if facts.dtype_of(part) in WHOLE:
            return True
        if len(waiting) < MOST_PARTS:
            waiting += [option for inner in _handed_on(part) for option in options(inner)]
    return False


def _handed_on(value: Value) -> tuple[Value, ...]:
    if isinstance(value, Operation):
        return value.operands
    if isinstance(value, (Item, Collection)):
        return value.parts
    if not isinstance(value, Call):
        return ()
    hands_on = isinstance(value.callee, Api) and value.method in KEEPING
    return value.arguments(slice(1)) if hands_on or is_call_of(value.callee, "keras.layers.Lambda") else ()
