"""The activations whose results are a model's outputs."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.own_layers import gives_what_its_base_gives
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Instance
from mpdoctor.program.values import Api, Value, known, leaves, options
from mpdoctor.semantics.source.function_names import function_or_activation_named
from mpdoctor.semantics.source.layers.output_layers import MOST_NESTED, keeps_dtype, output_layers


def activations_of(facts: SourceFacts, value: Value | None, depth: int = 0, in_graph: bool = False) -> set[str]:
    """The activations that a tensor comes straight from, "" where nothing is known of it. `in_graph`: functions such as
    `tf.nn.softmax` count as well, which Keras finds in a graph only."""
    return set().union(*(_activations_of_one(facts, option, depth, in_graph) for option in options(value)))


def activations_of_outputs(facts: SourceFacts, model: Value | None, depth: int = 0, in_graph: bool = False) -> set[str]:
    """The activations whose results are the outputs of a model, whoever calls it."""
    return set().union(*(_activations_of_model(facts, option, depth, in_graph) for option in options(model)))


def _activations_of_one(facts: SourceFacts, value: Value, depth: int, in_graph: bool) -> set[str]:
    made_by = value.callee if isinstance(value, Call) else None
    if isinstance(made_by, (Call, Instance)):
        return activations_of_outputs(facts, made_by, depth, in_graph)
    return {function_or_activation_named(value) if in_graph else ""}


def _activations_of_model(facts: SourceFacts, model: Value, depth: int, in_graph: bool) -> set[str]:
    own = class_of(model)
    call = own.find_method("call") if own is not None else None
    if depth > MOST_NESTED:
        return {""}
    if own is not None and isinstance(model, Call) and gives_what_its_base_gives(model, facts.values_returned):
        return {activation_given(model) or _activation_named(own.base_argument("activation"))}
    if own is not None and call is None:
        return {""}
    if call is not None:
        returned = (event.value for event in facts.returns_of(call))
        return set().union(*(activations_of(facts, value, depth + 1, in_graph) for value in returned)) or {""}
    if not isinstance(model, Call):
        return {""}
    outputs = list(leaves(model.argument(1, "outputs"))) if is_call_of(model, "keras.Model") else []
    if in_graph and any(map(keeps_dtype, outputs)):
        return set(map(function_or_activation_named, outputs))
    return {activation_given(layer) for layer in output_layers(facts, model) or [model]}


def activation_given(layer: Call) -> str:
    """The activation that a layer is given; "" where it is not written down, or is none of Keras' by name."""
    name = public_name(layer.callee.name).rpartition(".")[2] if isinstance(layer.callee, Api) else ""
    if name == "Softmax":
        return "softmax"
    return _activation_named(layer.argument(0, "activation") if name == "Activation" else layer.keyword("activation"))


def _activation_named(given: Value | None) -> str:
    named = known(given)
    if isinstance(named, str):
        return named
    return public_name(given.name).rpartition(".")[2] if isinstance(given, Api) else ""
