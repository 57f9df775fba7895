"""Functions of the user's that Keras' layers call with their own tensors: those of Lambda layers, and activations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Value, options

FUNCTION_GIVEN = {"Lambda": (0, "function"), "Activation": (0, "activation"), "Dense": (1, "activation")}
ACTIVATIONS = ("activation", "recurrent_activation")


@lru_cache(maxsize=1)
def lambda_layers(facts: SourceFacts) -> tuple[tuple[int, Call], ...]:
    """Functions of the user's that Lambda layers call, or that layers call as their activations, by id, and those
    layers. Cached for one program after the other: it is asked for each line of a layer."""
    return tuple(_lambda_layers(facts))


def _lambda_layers(facts: SourceFacts) -> Iterator[tuple[int, Call]]:
    for layer in facts.library_calls:
        place, _, name = public_name(layer.callee.name).rpartition(".") if isinstance(layer.callee, Api) else ("",) * 3
        if place == "keras.layers":
            for option in _functions_given(layer, name):
                if isinstance(option, Defined) and isinstance(option.of, FunctionFacts):
                    yield id(option.of), layer


def _functions_given(layer: Call, name: str) -> Iterator[Value]:
    if name in FUNCTION_GIVEN:
        yield from options(layer.argument(*FUNCTION_GIVEN[name]))
    else:
        for keyword in ACTIVATIONS:
            yield from options(layer.keyword(keyword))
