"""A function, a Lambda or a resize turns the 16-bit stream into float32, and nothing in the code says so.

## Why it matters
What is computed from there on until the next layer casts it back is computed, and kept for the way back, in float32:
twice the memory, none of the speed. In Keras 3.15 `inputs + layer(inputs)` promotes, because the Input is float32;
in a chain of such sums the whole residual stream is float32. `tf.image.resize` gives float32 whatever it is given,
and so does UpSampling2D in Keras 2, unless it takes the nearest pixel (tf_keras 2.21, TensorFlow 2.15 and 2.10; no
other of some ninety built-in layers puts out more digits than it computes with). A cast that is written out,
or `dtype="float32"`, is meant, and nothing is said.

## Flagged
```python
# keras: 3
import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
inputs = keras.Input((8,))
hidden = inputs + keras.layers.Dense(8)(inputs)
model = keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(hidden))
model.compile("adam", "mse")
model.fit(np.ones((320, 8), "float32"), np.ones((320, 1), "float32"))
```

## Fixed
```python
# keras: 3
import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
inputs = keras.Input((8,))
hidden = keras.layers.Add()([inputs, keras.layers.Dense(8)(inputs)])
model = keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(hidden))
model.compile("adam", "mse")
model.fit(np.ones((320, 8), "float32"), np.ones((320, 1), "float32"))
```

## Versions
Functions between layers: Keras 3; Keras 2 raises instead. Lambda and layers of one's own: all. UpSampling2D: Keras 2.

## Where users met it
tensorflow/tensorflow#41614, tensorflow/tensorflow#48873, tensorflow/tensorflow#50668, keras-team/keras#20931.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.half_dtypes import HALF

SEVERITY = Severity.WARNING
RESIZING = ("UpSampling2D",)  # built in; of all others the output was seen to be what they compute in
# Functions of several tensors, of which the widest decides.
PROMOTING = frozenset(
    ("Add", "Subtract", "Multiply", "Divide", "TrueDivide", "Power", "Maximum", "Minimum", "Matmul", "Einsum", "Dot")
) | {"Tensordot", "Where", "Concatenate", "Stack"}


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained:
        return
    for layer in model.layers:
        half = next((dtype for dtype in layer.input_dtypes if dtype in HALF), None)
        if half is None or not _gives_float32(layer) or _is_of_library(layer) or _is_wanted(layer, model):
            continue
        told = _promotion(layer, half)
        if told is not None:
            message, help = told
            evidence = {"input_dtypes": list(layer.input_dtypes), "output_dtypes": list(layer.output_dtypes)}
            yield Finding(message, help, layer.made_at, layer=layer.path, evidence=evidence)


def _gives_float32(layer: LayerFacts) -> bool:
    """Of what stands between other layers: an output may well be float32."""
    return layer.output_dtypes[:1] == ("float32",) and not layer.is_output and not layer.is_model


def _is_of_library(layer: LayerFacts) -> bool:
    return layer.made_at is None if layer.is_operation else layer.made_by != ""


def _is_wanted(layer: LayerFacts, model: ModelFacts) -> bool:
    """Whether a layer inside of it was asked for float32, or a function is given what such a layer gives."""
    if any(inner.compute_dtype not in HALF for inner in model.inside(layer) if inner.floating):
        return True
    return layer.is_operation and _is_given_float32(layer, model)


def _is_given_float32(function: LayerFacts, model: ModelFacts) -> bool:
    """Whether a float32 input comes from a layer that was asked for float32, as a stream kept in float32 does."""
    parent = function.path.rpartition("/")[0]
    pairs = zip(function.given_by, function.input_dtypes, strict=False)
    wide = {f"{parent}/{name}" if parent else name for name, dtype in pairs if dtype == "float32"}
    return any(
        layer.path in wide and layer.class_name != "InputLayer" and not layer.is_operation for layer in model.layers
    )


def _promotion(layer: LayerFacts, half: str) -> tuple[str, str] | None:
    if layer.is_operation:
        return _promotion_of_function(layer, half)
    if layer.compute_dtype not in HALF:
        return None  # dtype="float32" was asked for
    subject = f"{layer.path} ({layer.class_name}) computes in {half} and puts out float32"
    if layer.class_name in RESIZING and not layer.own_class:
        return (
            f'{subject}: in Keras 2 every interpolation but "nearest" does.',
            'Give it `interpolation="nearest"`, or cast its output.',
        )
    is_loss = len(layer.output_shape) < 2  # Keras' loss objects give float32, and are meant to
    if (layer.class_name == "Lambda" or layer.own_class) and not (layer.names_dtype or is_loss) and layer.autocast:
        return (
            f"{subject}, though its code names no dtype: something in it promotes (`tf.image.resize`, a float32 "
            "constant, a weight that comes first).",
            'Cast what it returns: `tf.cast(outputs, inputs.dtype)`; or say that float32 is meant: `dtype="float32"`.',
        )
    return None


def _promotion_of_function(function: LayerFacts, half: str) -> tuple[str, str] | None:
    if function.class_name not in PROMOTING:
        return None
    other = "float32" if len(function.input_dtypes) > 1 else "a float32 constant"  # Keras 3.3 forgets which it was
    return (
        f"`{function.class_name.lower()}` is given {half} and {other} here, and gives float32: the stream is "
        "float32 until the next layer casts it.",
        f'Use a layer, which casts all its inputs (`keras.layers.Add()`), or cast the float32 one to "{half}".',
    )
