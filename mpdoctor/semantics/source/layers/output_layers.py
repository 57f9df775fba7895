"""The last layers of a model as its source builds them, and the dtype in which they compute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.facts.half_dtypes import SIXTEEN_BITS
from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import is_network, public_name
from mpdoctor.knowledge.layer_kinds import HANDING_ON, OUTPUT_IN_COMPUTE_DTYPE
from mpdoctor.program.dtypes.layer_results import gives_what_its_base_gives
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.policy_settings import UNSURE
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Parameter
from mpdoctor.program.values import Api, Collection, Value, is_api, known, leaves, options
from mpdoctor.semantics.source.function_names import function_or_activation_named
from mpdoctor.semantics.source.layers.last_rounds import made_in_rounds, without_hidden
from mpdoctor.semantics.source.layers.preceding_layers import last_of_sequential
from mpdoctor.semantics.source.programs.branches import may_be_reached_by

WRAPPED_LAYER = ("keras.layers.TimeDistributed", "keras.layers.Bidirectional")
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
    elif _is_application(model):
        return [model]
    else:
        last = _last_of_own_class(facts, model, facts.calls if depth else ())
    layers: list[Call] = []
    for layer in last:
        is_nested = is_call_of(layer, "keras.Sequential", "keras.Model") or _is_application(layer)
        made = output_layers(facts, layer, depth + 1) if is_nested or class_of(layer) is not None else [layer]
        if not made and is_nested:
            return []
        layers.extend(made or [layer])
    return _of_the_last_round(facts, model, layers)


def _of_the_last_round(facts: SourceFacts, model: Call, layers: list[Call]) -> list[Call]:
    """The layers, where a loop makes them, that its last round may have made; [] where some of these give 16 bits and
    others do not, so that nobody knows: `for kind in kinds: x = LAYERS[kind]()(x)`."""
    if is_functional(model) and any(isinstance(given, Collection) for given in options(model.argument(1, "outputs"))):
        return layers  # of several heads, not of one output that was made anew in each round
    in_rounds = made_in_rounds(model, layers)
    differ = len({sixteen_bit_output(facts, layer) is None for layer in in_rounds}) > 1
    return [] if differ else without_hidden(layers, in_rounds)


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
    dtype = _sixteen_bits(tuple(policy for policy in facts.policies_at(layer) if isinstance(policy, str)))
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


def sixteen_bit_output(facts: SourceFacts, layer: Call) -> str | None:
    """The 16-bit dtype that the output of this layer may have; None if it has none for certain, or that is not
    known."""
    while is_call_of(layer, *WRAPPED_LAYER):
        inner = layer.argument(0, "layer")
        if layer.open or layer.keyword("dtype") is not None or not isinstance(inner, Call):
            return None
        layer = inner
    if layer.open or not (isinstance(layer.callee, Api) or gives_what_its_base_gives(layer, facts.values_returned)):
        return None
    given = layer.keyword("dtype")
    is_certain = _is_application(layer) or answers_in_compute_dtype(layer, facts.keras)
    if not is_certain and isinstance(layer.callee, Api):
        return None
    if given is not None and known(given) is not None:
        return _sixteen_bits(policies_named(given))
    policies = facts.policies_at(layer)
    if facts.assume_mixed and all(policy in (None, UNSURE) for policy in policies):
        return "float16"
    return _sixteen_bits(tuple(policy for policy in policies if isinstance(policy, str)))


def answers_in_compute_dtype(layer: Call, keras: Keras) -> bool:
    """Whether the output of a library's layer has its compute dtype for certain. A bilinear UpSampling2D gives float32
    in Keras 2."""
    name = public_name(layer.callee.name).rpartition(".")[2] if isinstance(layer.callee, Api) else ""
    return name in OUTPUT_IN_COMPUTE_DTYPE or (name == "UpSampling2D" and (keras.is_keras3 or hands_on(layer)))


def hands_on(layer: Call) -> bool:
    """Whether a library's layer hands on the numbers that it is given, in its compute dtype."""
    name = public_name(layer.callee.name).rpartition(".")[2] if isinstance(layer.callee, Api) else ""
    if name == "UpSampling2D":
        given = layer.argument(2, "interpolation")
        return not layer.open and (given is None or known(given) == "nearest")
    return name in HANDING_ON


def _sixteen_bits(policies: tuple[str, ...]) -> str | None:
    return next((SIXTEEN_BITS[policy] for policy in policies if policy in SIXTEEN_BITS), None)


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


def _is_application(value: Value) -> bool:
    """Whether it is a whole network of keras.applications, with its classifying top."""
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return False
    name = value.callee.name
    return (
        is_network(name)
        and known(value.keyword("include_top")) is not False
        and (value.keyword("include_top") is None or known(value.keyword("include_top")) is True)
        and not value.args
        and is_api(value.callee, name)
    )
