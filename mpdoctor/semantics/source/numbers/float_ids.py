"""The way of class ids from an Input of floats through layers that cast them to 16 bits and hand them on.

Which layers those are: tried in Keras 3.15 and tf_keras 2.21. In Keras 3 integers beside a float become 16-bit with it;
Keras 2 refuses to join them."""

from __future__ import annotations

from typing import NamedTuple

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.layer_kinds import HANDING_ON
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Collection, Item, Value, options
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.numbers.class_ids import PASSING, gives_floats
from mpdoctor.semantics.source.operands.casts import is_cast
from mpdoctor.semantics.source.programs.data.fed_elements import Keys, keys_of_part

JOINING = frozenset(("Add", "Subtract", "Multiply", "Maximum", "Minimum", "Concatenate"))
PASSING_LAYERS = HANDING_ON | JOINING | {"Masking", "Identity", "Lambda", "GlobalMaxPooling1D", "GlobalMaxPool1D"}
JOINING_FUNCTIONS = frozenset(("add", "subtract", "multiply", "maximum", "minimum", "concatenate"))
LONGEST = 200
MOST_STEPS = 30


class TakenIds(NamedTuple):
    """Ids that are a part of what `call()` is given for a parameter: `inputs["user"]` has the key "user"."""

    parameter: Parameter
    keys: Keys


def taken_from_input(facts: SourceFacts, ids: Value | None) -> TakenIds | None:
    """What the ids of a user's layer or model are taken from, cast or not, or given to a layer that hands numbers
    on; None where that is not certain."""
    value = ids
    for _ in range(MOST_STEPS):
        choices = options(value)
        if len(choices) != 1:
            return None
        whole, keys = keys_of_part(choices[0])
        if isinstance(whole, Parameter):
            return TakenIds(whole, keys) if _is_of_call(whole) else None
        before = numbers_before(facts, choices[0])
        value = before[0] if len(before) == 1 else None
    return None


def _is_of_call(parameter: Parameter) -> bool:
    """Whether it is a parameter of the `call()` of a user's layer or model."""
    function = parameter.function
    owner = function.owner if function is not None and function.name == "call" else None
    return parameter.index >= 1 and owner is not None and owner.is_layer


def rounding_layer(facts: SourceFacts, ids: Value, casting: Call | None = None) -> Call | None:
    """The first layer that casts an Input of floats on its way to become these ids; None where that is not certain.
    `casting`: a layer that casts the ids when it is given them."""
    waiting: list[tuple[Value, Call | None]] = [(ids, casting)]
    seen = set[tuple[int, int]]()
    while waiting and len(seen) < LONGEST:
        value, passed = waiting.pop(0)
        choices = options(value)
        if len(choices) != 1 or (id(choices[0]), id(passed)) in seen:
            continue
        source = choices[0]
        seen.add((id(source), id(passed)))
        if is_call_of(source, "keras.Input"):
            if passed is not None and gives_floats(source):
                return passed
        elif passed is None or not is_cast(source):  # else the layer's input was cast before
            layer = layer_called(source)
            casts = layer is not None and half_dtype_of_layer(facts, layer) is not None
            waiting += [(before, layer if casts else passed) for before in numbers_before(facts, source)]
    return None


def rounding_layer_in_a_row(facts: SourceFacts, before: list[Value]) -> Call | None:
    """The first layer of a Sequential that casts its Input of floats, where all these hand the numbers on."""
    layers = [step for step in before if isinstance(step, Call)]
    if len(layers) < max(len(before), 2) or not is_call_of(layers[0], "keras.Input", "keras.layers.InputLayer"):
        return None
    if not gives_floats(layers[0]) or not all(_passes(facts, layer) for layer in layers[1:]):
        return None
    return next((layer for layer in layers[1:] if half_dtype_of_layer(facts, layer) is not None), None)


def layer_called(tensor: Value) -> Call | None:
    """The layer that gives a tensor: what `Reshape((2, 1))` made, or `concatenate([a, b])` itself."""
    if not isinstance(tensor, Call):
        return None
    if isinstance(tensor.callee, Call):
        return tensor.callee
    return tensor if _name_among_layers(tensor) in JOINING_FUNCTIONS else None


def numbers_before(facts: SourceFacts, tensor: Value) -> tuple[Value, ...]:
    """The tensors that an item, a cast, a function that keeps numbers, or a layer that hands them on was given."""
    if isinstance(tensor, Item):
        return (tensor.of,)
    layer = layer_called(tensor)
    if not isinstance(tensor, Call) or (layer is not None and not _passes(facts, layer)):
        return ()
    if layer is None and not is_cast(tensor) and function_named(tensor) not in PASSING:
        return ()
    given = tensor.argument(0, "inputs") or tensor.keyword("x") or tensor.keyword("tensor") or tensor.keyword("input")
    if not isinstance(given, Collection):
        return () if given is None else (given,)
    joined = layer is not None and _name_among_layers(layer) in JOINING | JOINING_FUNCTIONS
    return given.items if joined or all(map(_is_float_input, given.items)) else ()


def _is_float_input(tensor: Value) -> bool:
    """Whether it is an Input of floats. Of several tensors a layer of the user's may hand on any."""
    return is_call_of(tensor, "keras.Input") and gives_floats(tensor)


def _passes(facts: SourceFacts, layer: Call) -> bool:
    """Whether a layer hands the numbers on that it is given, in 16 bits or in float32. Keras casts the input of a
    user's layer or model before its `call()` runs, so ids are rounded whatever that does with them."""
    in_half = half_dtype_of_layer(facts, layer) is not None
    own = class_of(layer)
    if own is not None:
        return in_half and (own.kind == "layer" or (own.kind == "model" and own.find_method("call") is not None))
    keeps = in_half or policies_named(layer.keyword("dtype")) == ("float32",)
    return keeps and _name_among_layers(layer) in PASSING_LAYERS | JOINING_FUNCTIONS


def _name_among_layers(layer: Call) -> str:
    place, _, name = public_name(layer.callee.name).rpartition(".") if isinstance(layer.callee, Api) else ("", "", "")
    return name if place == "keras.layers" else ""
