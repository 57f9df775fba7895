"""The last layers of a model as its source builds them, and the dtype in which they compute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Parameter
from mpdoctor.program.values import Collection, Value, known, leaves, options
from mpdoctor.semantics.source.function_names import function_or_activation_named
from mpdoctor.semantics.source.layers.last_rounds import last_layers_of_rounds
from mpdoctor.semantics.source.layers.output_dtypes import is_application, sixteen_bits
from mpdoctor.semantics.source.layers.preceding_layers import last_of_sequential
from mpdoctor.semantics.source.programs.branches import may_be_reached_by

MOST_NESTED = 8
# Functions of one tensor that answer in its dtype, so that the layer before them decides how a model's output comes.
_KEEPING_DTYPE = frozenset(
    ("softmax", "sigmoid", "tanh", "relu", "log_softmax", "squeeze", "expand_dims", "reshape", "transpose", "identity")
)
# A cast after other activations is too late: sigmoid(8) was 1.000000, its gradient 0 (Keras 3.15, TensorFlow 2.10).
KEEPING_DIGITS = ("", "linear", "relu")


def output_layers(facts: SourceFacts, model: Call, depth: int = 0) -> list[Call]:
    """The calls that made the layers whose outputs are the model's; [] where one of them is not known."""
    if depth > MOST_NESTED:
        return []
    original = _cloned(model)
    if original is not None:
        return output_layers(facts, original, depth + 1)
    if is_call_of(model, "keras.Sequential"):
        last = last_of_sequential(facts, model, model.argument(0, "layers"))
    elif _is_own_sequential(class_of(model)):
        last = last_of_sequential(facts, model, _handed_to_base(facts, model, 0, "layers"))
    elif is_functional(model):
        last = layers_behind(_past_layers_that_hand_on(facts, model.argument(1, "outputs")))
    elif is_application(model):
        return [model]
    else:
        last = _last_of_own_class(facts, model, facts.calls if depth else ())
    found: dict[Call, list[Call]] = {}  # of each layer that may be last those that give its output
    for layer in last:
        is_nested = is_call_of(layer, "keras.Sequential", "keras.Model") or is_application(layer)
        made = output_layers(facts, layer, depth + 1) if is_nested or class_of(layer) is not None else [layer]
        if not made and is_nested:
            return []
        found[layer] = made or [layer]
    last = list(found) if len(found) < 2 or _gives_several(facts, model) else last_layers_of_rounds(facts, model, found)
    return [layer for last_one in last for layer in found[last_one]]


def _gives_several(facts: SourceFacts, model: Call) -> bool:
    """Whether a model has several outputs, `[head(x) for head in heads]`, not one that each round makes anew."""
    own = class_of(model)
    call = own.find_method("call") if own is not None else None
    outputs = [model.argument(1, "outputs")] if is_functional(model) else []
    outputs += [event.value for event in facts.returns_of(call)] if call is not None else []
    return any(isinstance(option, Collection) for output in outputs for option in options(output))


def _past_layers_that_hand_on(facts: SourceFacts, output: Value | None) -> Value | None:
    """The tensor behind layers of the program's own that return their input unchanged, such as a layer whose `call()`
    only adds a loss."""
    handed = [given for _, given in _handings_on(facts, output)]
    return handed[-1] if handed else output


def recasting_layer(facts: SourceFacts, model: Call) -> tuple[Call, str] | None:
    """The layer of the program's own that returns a functional model's output unchanged, and its 16-bit dtype. Keras 3
    casts all of its input to that dtype, whatever the layers before it compute in; None in Keras 2, which casts only
    the first argument."""
    handing = next(_handings_on(facts, model.argument(1, "outputs")), None) if is_functional(model) else None
    if handing is None or not facts.keras.is_keras3:
        return None
    layer, own = handing[0], class_of(handing[0])
    dtype = sixteen_bits(tuple(policy for policy in facts.policies_at(layer) if isinstance(policy, str)))
    casts = own is not None and own.base_argument("autocast") is None
    return (layer, dtype) if casts and dtype is not None and not layer.open else None


def _handings_on(facts: SourceFacts, output: Value | None) -> Iterator[tuple[Call, Value]]:
    """(layer of the program's own, the tensor that it returns unchanged), from a model's output inwards."""
    for _ in range(MOST_NESTED):
        given = _handed_on(facts, output) if isinstance(output, Call) else None
        if given is None or not isinstance(output, Call) or not isinstance(output.callee, Call):
            return
        yield output.callee, given
        output = given


def _handed_on(facts: SourceFacts, called: Call) -> Value | None:
    """The argument that a layer of the program's own returns unchanged; None for other layers, and for a layer with a
    dtype of its own, which may cast it."""
    layer, own = called.callee, class_of(called.callee)
    method = own.find_method("call") if own is not None and own.kind == "layer" else None
    if own is None or method is None or not isinstance(layer, Call):
        return None
    dtype = layer.keyword("dtype") or own.base_argument("dtype")
    if dtype is not None and known(dtype) is not None:
        return None
    returned = {option for event in facts.returns_of(method) for option in options(event.value)}
    handed = next(iter(returned), None)
    is_handed = len(returned) == 1 and isinstance(handed, Parameter) and handed.function is method
    if not is_handed or not isinstance(handed, Parameter):
        return None
    return called.argument(handed.index - method.first_given, handed.name)


def _cloned(model: Call) -> Call | None:
    """The model that a plain `clone_model` call copies: the clone's layers have the policies of the original's, in
    every Keras."""
    if not is_call_of(model, "keras.models.clone_model") or model.open or model.argument(2, "clone_function"):
        return None
    original = options(model.argument(0, "model"))
    return original[0] if len(original) == 1 and isinstance(original[0], Call) else None


def layers_of_output(model: Call, output: object) -> list[Call]:
    """The layers that may give one of several outputs of a functional model, by its number or its key in a dict."""
    written = [option for option in options(model.argument(1, "outputs")) if is_functional(model)]
    outputs = [option.entry(output) if isinstance(option, Collection) else None for option in written]
    return [layer for tensor in outputs for layer in layers_behind(tensor)] if None not in outputs else []


def is_functional(model: Call) -> bool:
    """Whether a model is made as keras.Model(inputs, outputs) is."""
    return is_call_of(model, "keras.Model") or _is_made_functional(class_of(model))


def _is_made_functional(own: ClassFacts | None) -> bool:
    """Whether a class of the program's own changes how a model is trained, and nothing else."""
    if own is None or own.kind != "model" or own.find_method("call") is not None:
        return False
    initializer = own.find_method("__init__")
    named = initializer.parameters[1:3] if initializer is not None else ("inputs", "outputs")
    return tuple(named) == ("inputs", "outputs") or any(name.startswith("*") for name in named[:1])


def _last_of_own_class(facts: SourceFacts, model: Call, calls: Iterable[Call]) -> list[Call]:
    """The layers whose results the `call()` of a class of the program's own returns, in this one object. `calls`: the
    calls that may be calls of the model; a trained model is called by Keras."""
    own = class_of(model)
    call = own.find_method("call") if own is not None and own.is_layer else None
    if own is not None and own.kind == "model" and call is None:
        return layers_behind(_handed_to_base(facts, model, 1, "outputs"))
    if own is None or call is None:
        return []
    places = {_place_inside(other) for other in facts.makings_of(own) if other is not model}
    others = places - {_place_inside(model)}  # of those that one line makes in a loop, all are alike
    own_calls = [other for other in calls if other.callee is model]
    layers: list[Call] = []
    for returned in facts.returns_of(call):
        if not may_be_reached_by(returned.context, own_calls):
            continue
        behind = layers_behind(returned.value)
        own_layers = [layer for layer in behind if not any(_is_made_inside(layer, place) for place in others)]
        if not own_layers or not all(_belongs_to(layer, model, own) for layer in own_layers):
            return []
        layers.extend(own_layers)
    return list(dict.fromkeys(layers))


def _is_own_sequential(own: ClassFacts | None) -> bool:
    """Whether a class of the program's own is a Sequential that calls its layers as Keras does."""
    return (
        own is not None
        and own.find_method("call") is None
        and [base.is_("keras.Sequential") for base in own.library_bases()] == [True]
    )


def _handed_to_base(facts: SourceFacts, model: Call, place: int, name: str) -> Value | None:
    """An argument that a class without a `call()` passes to Keras' constructor where it makes this model, as the
    outputs in `super().__init__(inputs, outputs)`; None unless exactly one call passes it."""
    own = class_of(model)
    if own is not None and own.find_method("__init__") is None:
        return model.argument(place, name)
    callers = _place_inside(model)
    handed = (call for call in facts.method_calls("__init__") if call.context.callers == callers)
    given = [argument for call in handed if (argument := call.argument(place, name)) is not None]
    return given[0] if len(given) == 1 else None


def _belongs_to(layer: Call, model: Call, own: ClassFacts) -> bool:
    """Whether a layer is one that the model's own methods make, or one that the model is given."""
    in_methods = layer.context.owner in tuple(own.lineage()) and not layer.context.callers
    return in_methods or _is_made_inside(layer, _place_inside(model)) or any(layer is part for part in _given(model))


def _given(model: Call) -> Iterator[Value]:
    for argument in model.given:
        yield from options(argument)


def _place_inside(model: Call) -> tuple[Location, ...]:
    """The calls that lead into the constructor of this model."""
    return (*model.context.callers, model.location)


def _is_made_inside(layer: Call, place: tuple[Location, ...]) -> bool:
    return layer.context.callers[: len(place)] == place


def layers_behind(outputs: Value | None, depth: int = 0) -> list[Call]:
    """The layers whose calls gave these tensors, directly or through functions that keep their dtype: `Dense(3)(x)` is
    a call of what `Dense(3)` made."""
    behind: list[Call] = []
    for output in leaves(outputs):
        if keeps_dtype(output) and isinstance(output, Call) and depth < MOST_NESTED:
            layers = layers_behind(first_of(output), depth + 1)
        else:
            layer = output.callee if isinstance(output, Call) else None
            layers = [layer] if isinstance(layer, Call) else []
        if not layers:
            return []
        behind.extend(layers)
    return behind


def keeps_dtype(value: Value) -> bool:
    return function_or_activation_named(value) in _KEEPING_DTYPE


def first_of(call: Call) -> Value | None:
    given = call.argument(0, "x")
    return given if given is not None else call.keyword("logits") or call.keyword("input") or call.keyword("tensor")
