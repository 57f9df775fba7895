"""How a program builds its models: which layers each of them holds, under which policy those were made, and which
models are trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Literal

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.knowledge.api_names import ADDING_WEIGHTS, is_layer_class, is_network, public_name
from mpdoctor.knowledge.layer_kinds import NORMALIZATION, PREPROCESSING, TEXT, WEIGHTLESS
from mpdoctor.program.dtypes.dtype_names import is_policy_in_force
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of
from mpdoctor.program.policy_settings import (
    SET_FLOATX,
    UNSURE,
    PolicyName,
    is_policy_of_command_line,
    policies_set_by,
    policy_given,
)
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Instance, Parameter
from mpdoctor.program.values import Api, Attribute, Item, Value, known, options, walk
from mpdoctor.semantics.source.programs.models import is_model

LIGHT = WEIGHTLESS | PREPROCESSING | NORMALIZATION | TEXT | {"Embedding"}
NESTS = frozenset(("Sequential", "Model", "Functional"))
_MAKING_WEIGHTS = (*ADDING_WEIGHTS, "Variable")
COPIES = ("keras.models.clone_model", "keras.models.load_model", "keras.models.model_from_")
PARTS_OF_MODELS = ("input", "inputs", "output", "outputs", "layers", "get_layer")


@lru_cache(maxsize=1)
def half_policy_calls(facts: SourceFacts) -> tuple[Call, ...]:
    """The calls that may set a 16-bit global policy, by a name that the program says (floatx is not among them)."""
    return tuple(call for call in facts.policy_calls if not set(HALF_POLICIES).isdisjoint(policies_shown(facts, call)))


def half_policy_before(facts: SourceFacts, call: Call) -> Call | None:
    """The call that has set the global policy which is certainly in force at this one, if that is one of 16 bits."""
    policies = facts.policies_at(call)
    if not policies or not all(name in HALF_POLICIES for name in policies):
        return None
    earlier = [setting for setting in half_policy_calls(facts) if setting.order < call.order]
    return earlier[-1] if earlier else None


def policies_set(call: Call) -> tuple[str, ...]:
    """Every global policy that a call may set, of an option its 16-bit default; () where one of them is not known, or
    where the call sets floatx."""
    if isinstance(call.callee, Api) and call.callee.is_(SET_FLOATX):
        return ()
    return policies_set_by(call)


def policies_shown(facts: SourceFacts, call: Call) -> tuple[str, ...]:
    """Like `policies_set`, and those that the program is meant for, where it reads the policy's name from outside."""
    return () if isinstance(call.callee, Api) and call.callee.is_(SET_FLOATX) else facts.policies_set_by(call)


def policies_written(call: Call) -> tuple[str, ...]:
    """Every global policy that a call may set whatever the options of the program are; () where one of them is not
    known, or where the call sets floatx."""
    is_written = bool(policies_set(call)) and not is_policy_of_command_line(call)
    return policies_named(policy_given(call)) if is_written else ()


def layer_name(value: Value) -> str | None:
    """The class of the layer (or model, or application) that a call makes; None if it makes none."""
    if not isinstance(value, Call):
        return None
    if isinstance(value.callee, Api):
        return _name_of_library_layer(value.callee.name)
    own = class_of(value)
    return own.name if own is not None and own.is_layer else None


@cache
def _name_of_library_layer(name: str) -> str | None:
    name = public_name(name)
    last = name.rpartition(".")[2]
    is_layer = is_network(name) or is_layer_class(name) or name == "tensorflow_hub.KerasLayer"
    return last if is_layer and last != "Input" else None


def policies_of_layer(facts: SourceFacts, layer: Call, inside: tuple[Call, ...] = ()) -> tuple[PolicyName, ...]:
    """The dtype policies that a layer (or model) may have: its own `dtype`, else the global policies where it is
    made. `inside`: the layers that were asked about on the way, of those that hand on their own policy."""
    own = class_of(layer)
    base = own.base_arguments.get("dtype") if own else None
    given = layer.keyword("dtype") or (None if isinstance(base, Parameter) else base)
    if given is not None and known(given) is not None:
        outer = _layers_that_hand_on(facts, given)
        if outer and layer not in inside:
            handed = (policy for one in outer for policy in policies_of_layer(facts, one, (*inside, layer)))
            return tuple(dict.fromkeys(handed))
        return policies_named(given) or (UNSURE,)
    return (UNSURE,) if layer.open and own is None else facts.policies_at(layer)


def _layers_that_hand_on(facts: SourceFacts, given: Value) -> Sequence[Call]:
    """The layers whose own policy it is: `self.dtype_policy`."""
    if not isinstance(given, Attribute) or not is_policy_in_force(given):
        return ()
    if isinstance(given.of, Instance):
        return facts.makings_of(given.of.of)
    return (given.of,) if isinstance(given.of, Call) and layer_name(given.of) is not None else ()


def has_own_dtype(layer: Call) -> bool:
    """Whether a layer is, or may be, given a dtype of its own, so that the global policy does not decide."""
    own = class_of(layer)
    given = layer.keyword("dtype") or (own.base_arguments.get("dtype") if own else None)
    is_given = given is not None and known(given) is not None and not isinstance(given, Parameter)
    return is_given or (layer.open and own is None)


def layers_of(facts: SourceFacts, model: Call) -> list[Call]:
    """The layers that a model is seen to hold, with nested layers, layers that `add` brings, and layers that its own
    class makes."""
    of_models = _layers_seen(facts)
    if model not in of_models:
        of_models[model] = _found_layers(facts, model)
    return list(of_models[model])


@lru_cache(maxsize=1)
def _layers_seen(_facts: SourceFacts) -> dict[Call, list[Call]]:
    """Cache of one program: the layers of each model that was asked about."""
    return {}


def _found_layers(facts: SourceFacts, model: Call) -> list[Call]:
    layers: dict[int, Call] = {}
    waiting = [model, *_added(facts, model)]
    seen = {id(part) for part in waiting}
    for value in waiting:
        if value is not model and isinstance(value, Call) and layer_name(value) is not None:
            layers[id(value)] = value
        more = list(_made_of(value))
        if isinstance(value, Call) and layer_name(value) is not None:
            more += [*_made_inside(facts, value), *(_added(facts, value) if value is not model else ())]
        for part in more:
            if id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)
    return sorted(layers.values(), key=lambda layer: layer.order)


def holds_weights(layer: Call) -> bool:
    """Whether a layer is one to compute in 16 bits: no preprocessing, and of a class of the user's one that is seen to
    keep weights or layers."""
    own = class_of(layer)
    if own is None:
        return layer_name(layer) not in LIGHT
    return any(
        isinstance(call, Call) and (call.method in _MAKING_WEIGHTS or layer_name(call) not in {None, *LIGHT})
        for own_class in own.lineage()
        for held in own_class.attributes.values()
        for call in walk(held)
    )


def policies_inside(facts: SourceFacts, model: Call) -> frozenset[PolicyName]:
    """The policies of a model's layers with weights (of the whole where its layers are not seen); empty where nothing
    is known of it."""
    return frozenset(policy for layer in _weighted_layers(facts, model) for policy in policies_of_layer(facts, layer))


def global_policies_inside(facts: SourceFacts, model: Call) -> frozenset[PolicyName]:
    """The global policies that a model's layers with weights take on; empty where one of them is given another dtype
    than float32 itself."""
    layers = _weighted_layers(facts, model)
    given = {policy for layer in layers if has_own_dtype(layer) for policy in policies_of_layer(facts, layer)}
    taken = (layer for layer in layers if not has_own_dtype(layer))
    return frozenset(policy for layer in taken for policy in facts.policies_at(layer) if given <= {"float32"})


def takes_the_global_policy(facts: SourceFacts, model: Call) -> bool:
    """Whether one of a model's layers with weights is given no dtype of its own."""
    return not all(map(has_own_dtype, _weighted_layers(facts, model)))


def _weighted_layers(facts: SourceFacts, model: Call) -> list[Call]:
    layers = [layer for layer in layers_of(facts, model) if layer_name(layer) not in LIGHT | NESTS]
    return [model] if not layers and layer_name(model) not in {None, *NESTS} else layers


def adding_calls(facts: SourceFacts, model: Call) -> list[Call]:
    """The calls of a model's `add`, in order."""
    return _adding_calls(facts).get(id(model), [])


def _added(facts: SourceFacts, model: Call) -> list[Value]:
    return [added for call in adding_calls(facts, model) for added in options(call.argument(0, "layer"))]


@lru_cache(maxsize=1)
def _adding_calls(facts: SourceFacts) -> dict[int, list[Call]]:
    """The calls of `add`, by the id of the model."""
    calls: dict[int, list[Call]] = {}
    for call in facts.method_calls("add"):
        for model in {id(option) for option in options(call.receiver)}:
            calls.setdefault(model, []).append(call)
    return calls


def _made_inside(facts: SourceFacts, model: Call) -> list[Call]:
    """The layers that a model's own class makes and keeps in attributes: those that the model's own constructor made,
    not another object's from the same line. Keras calls `build`, nobody knows when: what it makes counts for each
    object, where the program sets one policy at most."""
    own = class_of(model)
    if own is None:
        return []
    of_classes = _layers_of_classes(facts)
    if own not in of_classes:
        of_classes[own] = [
            layer
            for own_class in own.lineage()
            for held in own_class.attributes.values()
            for layer in walk(held)
            if isinstance(layer, Call) and layer_name(layer)
        ]
    inside = (*model.context.callers, model.location)
    return [
        layer
        for layer in of_classes[own]
        if layer.context.callers[: len(inside)] == inside
        or (len(facts.policy_calls) < 2 and _is_made_in_build(layer, own))
    ]


def _is_made_in_build(layer: Call, own: ClassFacts) -> bool:
    function = layer.context.function
    return function is not None and function.name == "build" and function.owner in own.lineage()


@lru_cache(maxsize=1)
def _layers_of_classes(_facts: SourceFacts) -> dict[ClassFacts, list[Call]]:
    """What each class keeps in attributes, whichever of its objects made it."""
    return {}


def _made_of(value: Value) -> Iterator[Value]:
    """The parts of a model, a layer's output or a list of layers through which layers come in."""
    if isinstance(value, Attribute) and value.name not in PARTS_OF_MODELS:
        return
    if isinstance(value, Call) and isinstance(value.callee, Attribute) and value.method not in PARTS_OF_MODELS:
        yield from value.args  # `tf.…`-like functions of things that are not followed
        return
    if isinstance(value, Call) and isinstance(value.callee, Api) and public_name(value.callee.name).startswith(COPIES):
        return  # made from a configuration: none of the layers that it was given
    if isinstance(value, Operation) and value.operator in ("f-string", "%"):
        return
    yield from value.parts


def layer_or_model(value: Value) -> Literal["layer", "model"] | None:
    """What a value certainly is; None of others."""
    if is_model(value):
        return "model"
    of: Value = value
    while isinstance(of, Item):
        of = of.of
    if of is not value and isinstance(of, Attribute) and of.name == "layers":
        return "layer" if all(is_model(option) for option in options(of.of)) else None
    own = class_of(value)
    if own is not None:
        return "layer" if own.kind == "layer" else None
    return "layer" if layer_name(value) is not None else None
