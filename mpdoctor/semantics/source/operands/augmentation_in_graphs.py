"""Layers that augment pictures in a graph and while training: in a `Dataset.map`, or in a model that fit() trains."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts
from mpdoctor.program.values import Value, known, options
from mpdoctor.semantics.source.layers.preceding_layers import layers_of_sequential
from mpdoctor.semantics.source.operands.numbers_first import FITTING, is_compiled, runs_eagerly
from mpdoctor.semantics.source.programs.data.training_data import functions_of_map
from mpdoctor.semantics.source.programs.running_functions import functions_around

MAP, FIT = "Dataset.map", "fit()"


def graph_of(facts: SourceFacts, layer: Call, of_batches: bool) -> str:
    """Where a graph certainly calls this layer in training: `MAP` or `FIT`; "" where none does. `of_batches`: whether
    it does something to a batch alone."""
    augmenting = [layer, *_around(facts, layer)]
    maps = [call for call in facts.method_calls("map") if not of_batches or _is_of_batches(call)]
    if any(option in augmenting for call in maps for option in options(call.argument(0, "map_func"))):
        return MAP
    calls = [call for call in facts.object_calls if any(option in augmenting for option in options(call.callee))]
    calls = [call for call in calls if known(call.argument(1, "training")) is not False]
    mapped = {id(function) for call in maps for function in functions_of_map(call)}
    if any(id(function) in mapped for call in calls for function in _functions(facts, call)):
        return MAP
    fits = list(facts.method_calls(*FITTING))
    if not fits or runs_eagerly(facts):
        return ""
    if any(option in augmenting for fit in fits for option in options(fit.receiver)):
        return FIT
    return FIT if any(_is_in_model(facts, call) for call in calls) else ""


def _around(facts: SourceFacts, layer: Call) -> Iterator[Call]:
    """The Sequentials that hold the layer, or hold one that does."""
    rows = [(model, layers_of_sequential(facts, model)) for model in facts.calls_of("keras.Sequential")]
    holding: list[Value] = [layer]
    for inner in holding:
        for model, layers in rows:
            if inner in layers and model not in holding:
                holding.append(model)
                yield model


def _is_of_batches(mapped: Call) -> bool:
    """Whether `batch` was called of the dataset before."""
    source = mapped.receiver
    while isinstance(source, Call):
        if source.method in ("batch", "padded_batch"):
            return True
        source = source.receiver
    return False


def _functions(facts: SourceFacts, call: Call) -> Iterator[FunctionFacts]:
    yield from filter(None, (call.context.function, *functions_around(facts, call.context)))


def _is_in_model(facts: SourceFacts, call: Call) -> bool:
    """Whether it is called on a tensor of a functional model, or in the `call()` of a layer of the user's own."""
    around = list(_functions(facts, call))
    own = (function.owner is not None and function.owner.is_layer and function.name == "call" for function in around)
    return _is_symbolic(call.argument(0)) or any(own) or any(map(is_compiled, around))


def _is_symbolic(tensor: Value | None) -> bool:
    for _ in range(200):
        if is_call_of(tensor, "keras.Input"):
            return True
        if not isinstance(tensor, Call) or not isinstance(tensor.callee, Call):
            return False
        tensor = tensor.argument(0, "inputs")
    return False
