"""The output of a trained model (softmax, sigmoid, logits or a regression) is 16-bit.

## Why it matters
A float16 probability has about three digits: 0.9999 becomes 1.0, and its cross-entropy is 0 or infinite. In
Keras 2 the loss is computed in the output's dtype too: a target of 1000 gave a mean squared error of `inf` in
tf_keras 2.21 and TensorFlow 2.15, where float32 gives 1e6. Keras 3 casts for its own losses, but only after the
digits are lost. The last layer is cheap: keep it in float32. For logits and regressions a cast after the layer
works as well; after a sigmoid or softmax it comes too late, because 0.9999 is already 1.0.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(64), keras.layers.Dense(10, activation="softmax")])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [
        keras.Input((20,)),
        keras.layers.Dense(64),
        keras.layers.Dense(10),
        keras.layers.Activation("softmax", dtype="float32"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
```

## Versions
All. Models that are not compiled (backbones, encoders, feature extractors) may give 16-bit outputs.

## Where users met it
tensorflow/tensorflow#34406, keras-team/keras-cv#752, qubvel/segmentation_models#536,
huggingface/transformers#12332.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import PROBABILITIES, TAPE, public_name
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts, Instance, Parameter
from mpdoctor.program.values import Api, Attribute, Item, Value, is_api, known, options
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.float32.outputs import output_in_float32
from mpdoctor.semantics.source.function_names import function_or_activation_named
from mpdoctor.semantics.source.layers.output_activations import activations_of_outputs
from mpdoctor.semantics.source.layers.output_dtypes import hands_on, sixteen_bit_output
from mpdoctor.semantics.source.layers.output_layers import KEEPING_DIGITS, output_layers, recasting_layer
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.numbers.computed_outputs import computed_outputs
from mpdoctor.semantics.source.programs.attribute_access import writes
from mpdoctor.semantics.source.programs.losses_and_metrics import STEPS
from mpdoctor.semantics.source.programs.models import TRAINING
from mpdoctor.semantics.source.programs.running_functions import functions_around
from mpdoctor.semantics.source.programs.using_scripts import trains_model
from mpdoctor.semantics.source.trainings.unread_outputs import UnreadOutputs
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
EXPLAINS = {"MP504": "model", "MP507": "model"}
NEVER_RAISES = True
ONLY_IN_HALF = True
LAYER_CLASS = "layer_class"  # in the evidence: the program's own class of layers that computes the output
CAST = ("tensorflow.cast", "keras.ops.cast", "keras.backend.cast")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    models = _trained_models(facts)
    cast_by_program = bool(models) and _is_cast_by_program(facts)
    for model in models:
        unread = UnreadOutputs(facts, model)
        read = [layer for layer in output_layers(facts, model) if layer not in unread.layers]
        recasting = recasting_layer(facts, model) if read and not cast_by_program else None
        if recasting is not None:
            yield _finding_of_recasting(*recasting)
        else:
            is_alone = cast_by_program and len(read) == 1
            behind = activations_of_outputs(facts, model, in_graph=True) if is_alone else set()
            for layer in read:
                yield from _findings_of_layer(facts, layer, cast_by_program and not behind & set(PROBABILITIES))
        for output, dtype in computed_outputs(facts, model):
            is_cast = cast_by_program and function_or_activation_named(output) not in PROBABILITIES
            if output not in unread.tensors and not is_cast:
                name = text_at(facts, output.location) or function_or_activation_named(output)
                message = _message(f"`{name}`" if name else "this line", dtype)
                evidence = _class_as_evidence(output.context.owner)
                yield Finding(message, _help_for_computed(output), output.location, evidence=evidence)


def _finding_of_recasting(layer: Call, dtype: str) -> Finding:
    own = class_of(layer)
    name = own.name if own is not None else "this layer"
    advice = f'Give `dtype="float32"` to `{name}`, which casts what it hands on, and to the layer that computes that.'
    return Finding(_message(name, dtype), advice, layer.location, evidence=_class_as_evidence(own))


def _findings_of_layer(facts: SourceFacts, layer: Call, cast_by_program: bool) -> Iterator[Finding]:
    dtype = sixteen_bit_output(facts, layer) or _dtype_of_lambda_layer(facts, layer)
    activations = activations_of_outputs(facts, layer)
    if cast_by_program and activations <= set(KEEPING_DIGITS):
        return
    own = class_of(layer)
    if dtype is not None and own is not None:
        yield Finding(
            _message(own.name, dtype), _help_for_derived(own), layer.location, evidence=_class_as_evidence(own)
        )
    elif dtype is not None and isinstance(layer.callee, Api):
        name = public_name(layer.callee.name).rpartition(".")[2]
        fix = unsafe_fix('Give the layer dtype="float32"', output_in_float32(facts, layer))
        evidence = _evidence_of(*activations)
        yield Finding(_message(name, dtype), _help(name, layer), layer.location, evidence=evidence, fix=fix)


def _help_for_derived(own: ClassFacts) -> str:
    init = own.find_method("__init__")
    takes_dtype = init is None or any(name == "dtype" or name.startswith("**") for name in init.parameters)
    further = "" if takes_dtype else f", which `{own.name}.__init__` has to hand on to `super().__init__(…)`"
    return f'Give the last layer `dtype="float32"`{further}.'


def _dtype_of_lambda_layer(facts: SourceFacts, layer: Call) -> str | None:
    dtype = precision_of(facts).of_lambda_layer(layer) if is_call_of(layer, "keras.layers.Lambda") else None
    return dtype if dtype in HALF else None


def _evidence_of(*activations: str) -> dict[str, str]:
    """The activation among these that gives probabilities, as evidence: of several outputs it is the one that a finding
    on a cross-entropy is about. {} where there is none, or several."""
    probabilities = set(activations) & set(PROBABILITIES)
    return {"activation": probabilities.pop()} if len(probabilities) == 1 else {}


def _class_as_evidence(own: ClassFacts | None) -> dict[str, str]:
    """The program's own class of layers that computes an output, as evidence; {} where it is no such class."""
    return {LAYER_CLASS: own.name} if own is not None and own.kind == "layer" else {}


def _help_for_computed(output: Value) -> str:
    function = function_or_activation_named(output)
    if function in PROBABILITIES:
        return f"Cast what goes into `{function}`, not what comes out: `tf.cast(…, tf.float32)`."
    return (
        "Compute it in float32: cast what it is made of, `tf.cast(…, tf.float32)`, or give the layers that make that "
        '`dtype="float32"`.'
    )


def _trained_models(facts: SourceFacts) -> Iterable[Call]:
    training = (call for call in facts.method_calls(*TRAINING) if trains_model(facts, call))
    trained = (option for call in training for option in options(call.receiver))
    models = dict.fromkeys(model for model in trained if isinstance(model, Call))
    return [model for model in models if _trains_its_output(facts, model)]


def _trains_its_output(facts: SourceFacts, model: Call) -> bool:
    """Whether the loss is computed from the model's output; False for a custom train_step that never calls the model,
    or one that the model is given and that is not followed from here."""
    own = class_of(model)
    step = own.find_method("train_step") if own is not None else None
    if own is None or step is None:
        return all(_is_followed(facts, given) for given in _steps_given(facts, model))
    lineage = tuple(own.lineage())
    called = (call for call in facts.calls if isinstance(call.callee, Instance) and call.callee.of in lineage)
    return any(step in (call.context.function, *functions_around(facts, call.context)) for call in called)


def _steps_given(facts: SourceFacts, model: Call) -> Iterator[FunctionFacts]:
    """The user's functions that are assigned to its `train_step`: `self.model.train_step = self.train_step`"""
    for write in writes(facts, ("train_step",)):
        given = (option.of for option in options(write.value) if isinstance(option, Defined))
        if model in options(write.of):
            yield from (function for function in given if isinstance(function, FunctionFacts))


def _is_followed(facts: SourceFacts, step: FunctionFacts) -> bool:
    return any(call.context.function is step for call in facts.calls)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained or model.call.kind == "loop":
        return  # A loop may cast the output itself, which the model does not show.
    from mpdoctor.semantics.live.half_outputs import help_for_output, keeps_digits

    for layer in _outermost_outputs(model):
        dtype = next((name for name in layer.output_dtypes or (_assumed(layer),) if name in HALF), None)
        if dtype is not None and not (model.casts_output and keeps_digits(layer)):
            yield Finding(
                _message(f"{layer.path} ({layer.class_name})", dtype),
                help_for_output(model, layer),
                layer.made_at,
                layer=layer.path,
                evidence={
                    "output_dtype": dtype,
                    "policy": layer.policy,
                    **_evidence_of(layer.activation),
                    **({LAYER_CLASS: layer.class_name} if layer.own_class else {}),
                },
            )


def _outermost_outputs(model: ModelFacts) -> list[LayerFacts]:
    """The layers whose outputs are the model's outputs; a nested model only where its last layers are not among
    them."""
    return [layer for layer in model.layers if _is_floating_output(layer) and not _holds_outputs(model, layer)]


def _is_floating_output(layer: LayerFacts) -> bool:
    return layer.is_output and layer.floating


def _holds_outputs(model: ModelFacts, layer: LayerFacts) -> bool:
    return layer.is_model and any(map(_is_floating_output, model.inside(layer)))


def _is_cast_by_program(facts: SourceFacts) -> bool:
    """Whether the program's own loss or train_step casts the prediction to float32 first."""
    casts = (call for call in facts.library_calls if isinstance(call.callee, Api) and call.callee.is_(*CAST))
    return any(
        _is_prediction_in_loss(facts, option) or _is_prediction_in_step(facts, option, cast)
        for cast in casts
        if _is_float32(cast.argument(1, "dtype"), facts)
        for option in options(cast.argument(0, "x"))
    )


def _is_float32(dtype: Value | None, facts: SourceFacts) -> bool:
    """Whether a cast is to float32, by name or through the dtype of a step's data."""
    data = dtype.of if isinstance(dtype, Attribute) and dtype.name == "dtype" else None
    while isinstance(data, Item):  # `x, y = data`
        data = data.of
    return isinstance(data, Parameter) or dtype_named(dtype, facts.keras) == "float32"


def _is_prediction_in_loss(facts: SourceFacts, value: Value) -> bool:
    """Whether it is the prediction argument of the program's own loss function or `compute_loss`."""
    if not isinstance(value, Parameter) or value.function is None:
        return False
    owner = value.function.owner
    if value.function.name == "compute_loss" and owner is not None and owner.kind == "model":
        return value.name == "y_pred"
    role = precision_of(facts).roles.get(id(value.function))
    return role is not None and not role.is_metric and value.index == value.function.first_given + 1


def _is_prediction_in_step(facts: SourceFacts, value: Value, cast: Call) -> bool:
    """Whether it is the prediction in `tf.cast(self(x), tf.float32)` of a step, or one of several outputs."""
    while isinstance(value, Item):
        value = value.of
    return isinstance(value, Call) and isinstance(value.callee, (Call, Instance)) and _is_in_a_step(facts, cast)


def _is_in_a_step(facts: SourceFacts, call: Call) -> bool:
    functions = filter(None, (call.context.function, *functions_around(facts, call.context)))
    opened = [manager for manager in call.context.withs if isinstance(manager, Call)]
    under_tape = any(is_api(manager.callee, TAPE) for manager in opened)
    return under_tape or any(function.name in STEPS for function in functions)


def _assumed(layer: LayerFacts) -> str:
    return "" if layer.own_class or layer.is_model else layer.compute_dtype


def _message(name: str, dtype: str) -> str:
    digits = "three" if dtype == "float16" else "two"
    return f"The model's output comes from {name} in {dtype}: the loss has about {digits} digits to work with."


def _help(name: str, layer: Call) -> str:
    if hands_on(layer):
        return (
            f'Give `dtype="float32"` to `{name}` and to the layers before it, back to the layer that computes these '
            "numbers: no later cast restores the digits that it rounds away."
        )
    if name[:1].isupper() and "dtype" not in dict(layer.keywords) and name not in ("Activation", "Softmax"):
        activation = known(layer.keyword("activation"))
        if isinstance(activation, str) and activation not in KEEPING_DIGITS:
            return (
                f"Keep the last step in float32: `{name}(…)` without an activation, then "
                f'`Activation("{activation}", dtype="float32")`. Or use `{name}(…, dtype="float32")`.'
            )
    return 'Give the last layer `dtype="float32"`.'
