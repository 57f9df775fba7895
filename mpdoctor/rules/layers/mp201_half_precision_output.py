"""The output of a model that is trained (softmax, sigmoid, logits or a regression) is 16-bit.

## Why it matters
A float16 probability has about three digits: 0.9999 is 1.0, and its cross-entropy is 0 or infinite. In
Keras 2 the loss is computed in the output's dtype too: a target of 1000 gave a mean squared error of `inf`
in tf_keras 2.21 and TensorFlow 2.15, where float32 gives 1e6. Keras 3 casts for its own losses, after the
digits are lost. The last layer is cheap: keep it in float32.

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
from mpdoctor.facts.names import public_name
from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.values import Api, Call, known, options
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.layers.outputs import output_layers, sixteen_bit_output

SEVERITY = Severity.WARNING
HALF = ("float16", "bfloat16")
BEHIND = '{} `Activation("linear", dtype="float32")` behind it.'
TRAINING = ("compile", "fit", "train_on_batch", "fit_generator")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    trained = [one for call in facts.method_calls(*TRAINING) for one in options(call.receiver)]
    for model in dict.fromkeys(one for one in trained if isinstance(one, Call)):
        for layer in output_layers(facts, model):
            dtype = sixteen_bit_output(facts, layer)
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
        if dtype is not None:
            yield Finding(
                _message(f"{layer.path} ({layer.class_name})", dtype),
                BEHIND.format("Put")
                if layer.is_operation
                else f'Give {layer.path} `dtype="float32"`, {BEHIND.format("or put")}',
                layer.made_at,
                layer=layer.path,
                evidence={"output_dtype": dtype, "policy": layer.policy},
            )


def _assumed(layer: LayerFacts) -> str:
    return "" if layer.own_class or layer.is_model else layer.compute_dtype


def _message(name: str, dtype: str) -> str:
    digits = "three" if dtype == "float16" else "two"
    return f"The model's output comes from {name} in {dtype}: about {digits} digits for the loss to work with."


def _help(name: str, layer: Call) -> str:
    if name[:1].isupper() and "dtype" not in dict(layer.keywords) and name not in ("Activation", "Softmax"):
        activation = known(layer.keyword("activation"))
        if isinstance(activation, str):
            return (
                f"Keep the last step in float32: `{name}(…)` without an activation, then "
                f'`Activation("{activation}", dtype="float32")`; or `{name}(…, dtype="float32")`.'
            )
    return 'Give the last layer `dtype="float32"`.'
