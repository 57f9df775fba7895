"""The output of a model that is trained (softmax, sigmoid, logits or a regression) is 16-bit.

## Why it matters
A float16 probability has about three digits: 0.9999 is 1.0, and its cross-entropy is 0 or infinite. In
Keras 2 the loss is computed in the output's dtype too: a target of 1000 gave a mean squared error of `inf`
in tf_keras 2.21 and TensorFlow 2.15, where float32 gives 1e6. Keras 3 casts for its own losses, after the
digits are lost. The last layer is cheap: keep it in float32. A cast behind it serves logits and a regression as well;
behind a sigmoid or softmax it comes too late, because 0.9999 is 1.0 already.

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

from collections.abc import Iterator

from mpdoctor.facts.model import LayerFacts, ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.half_dtypes import HALF
from mpdoctor.program.dtypes import dtype_named
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Call, Instance, Parameter, is_api, known, options
from mpdoctor.semantics.source.layers.output_layers import (
    activation_of,
    activations_of_outputs,
    output_layers,
    sixteen_bit_output,
)
from mpdoctor.semantics.source.numbers.losses_and_metrics import STEPS
from mpdoctor.semantics.source.numbers.precision import precision_of

SEVERITY = Severity.WARNING
EXPLAINS = {"MP504": "model", "MP507": "model"}
NEVER_RAISES = True
PROBABILITIES = ("softmax", "sigmoid")
CAST = ("tensorflow.cast", "keras.ops.cast", "keras.backend.cast")
# A cast behind others mends nothing: a sigmoid of 8 was 1.000000, its gradient 0 (Keras 3.15, TensorFlow 2.10).
KEEPING_DIGITS = ("", "linear", "relu")
TRAINING = ("compile", "fit", "train_on_batch", "fit_generator")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    cast_by_program = _is_cast_by_program(facts)
    trained = [one for call in facts.method_calls(*TRAINING) for one in options(call.receiver)]
    for model in dict.fromkeys(one for one in trained if isinstance(one, Call)):
        for layer in output_layers(facts, model):
            dtype = sixteen_bit_output(facts, layer)
            if cast_by_program and activations_of_outputs(facts, layer) <= set(KEEPING_DIGITS):
                continue
            if dtype is not None and isinstance(layer.callee, Api):
                name = public_name(layer.callee.name).rpartition(".")[2]
                yield Finding(_message(name, dtype), _help(name, layer), layer.location)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained or model.call.kind == "loop":
        return  # A loop may cast the output by hand, and nobody sees that from the model.
    outputs = [layer for layer in model.layers if layer.is_output and layer.floating]
    for layer in outputs:
        if layer.is_model and any(other.path.startswith(layer.path + "/") for other in outputs):
            continue
        dtype = next((one for one in layer.output_dtypes or (_assumed(layer),) if one in HALF), None)
        if dtype is not None and not (model.casts_output and _keeps_digits(layer)):
            yield Finding(
                _message(f"{layer.path} ({layer.class_name})", dtype),
                _live_help(layer),
                layer.made_at,
                layer=layer.path,
                evidence={"output_dtype": dtype, "policy": layer.policy},
            )


def _keeps_digits(layer: LayerFacts) -> bool:
    """Whether what stands behind the layer may as well do the cast."""
    is_plain = layer.settings.activation in KEEPING_DIGITS and activation_of(layer) not in PROBABILITIES
    return layer.own_class or layer.is_model or is_plain


def _live_help(layer: LayerFacts) -> str:
    behind = '`Activation("linear", dtype="float32")` behind it.'
    if layer.is_operation:
        name = layer.class_name.lower()
        if name in PROBABILITIES:
            return f"Cast what goes into `{name}`, not what comes out: `tf.cast(…, tf.float32)`."
        return f"Put {behind}"
    if _keeps_digits(layer):
        return f'Give {layer.path} `dtype="float32"`, or put {behind}'
    return (
        f'Give {layer.path} itself `dtype="float32"`: what its {activation_of(layer)} has rounded, no cast behind it '
        "brings back."
    )


def _is_cast_by_program(facts: SourceFacts) -> bool:
    """Whether a loss or a train_step of the program's own casts the prediction to float32 first."""
    roles = precision_of(facts).roles
    for call in facts.calls:
        if not isinstance(call.callee, Api) or not call.callee.is_(*CAST):
            continue
        if dtype_named(call.argument(1, "dtype"), facts.keras) != "float32":
            continue
        for one in options(call.argument(0, "x")):
            if isinstance(one, Parameter) and one.function is not None:
                role = roles.get(id(one.function))
                if role is not None and not role.is_metric and one.index == (1 if one.function.owner is None else 2):
                    return True
            if isinstance(one, Call) and isinstance(one.callee, (Call, Instance)) and _is_in_a_step(call):
                return True
    return False


def _is_in_a_step(call: Call) -> bool:
    function = call.context.function
    opened = [one for one in call.context.withs if isinstance(one, Call)]
    under_tape = any(is_api(one.callee, "tensorflow.GradientTape") for one in opened)
    return under_tape or (function is not None and function.name in STEPS)


def _assumed(layer: LayerFacts) -> str:
    return "" if layer.own_class or layer.is_model else layer.compute_dtype


def _message(name: str, dtype: str) -> str:
    digits = "three" if dtype == "float16" else "two"
    return f"The model's output comes from {name} in {dtype}: about {digits} digits for the loss to work with."


def _help(name: str, layer: Call) -> str:
    if name[:1].isupper() and "dtype" not in dict(layer.keywords) and name not in ("Activation", "Softmax"):
        activation = known(layer.keyword("activation"))
        if isinstance(activation, str) and activation not in KEEPING_DIGITS:
            return (
                f"Keep the last step in float32: `{name}(…)` without an activation, then "
                f'`Activation("{activation}", dtype="float32")`; or `{name}(…, dtype="float32")`.'
            )
    return 'Give the last layer `dtype="float32"`.'
