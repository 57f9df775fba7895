"""A function, a Lambda or a resize silently turns 16-bit values into float32.

## Why it matters
Until the next layer casts the values back, they are computed in float32, and stored in float32 for the backward
pass: twice the memory, none of the speed. In Keras 3.15 `inputs + layer(inputs)` promotes, because the Input is
float32; a chain of such sums keeps the whole residual stream in float32. `tf.image.resize` returns float32 for
every input dtype unless its method is "nearest", and so does UpSampling2D in Keras 2 (tf_keras 2.21, TensorFlow
2.15 and 2.10; none of some ninety other built-in layers returns more digits than it computes with). An explicit
cast or `dtype="float32"` is deliberate and not reported.

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
Functions between layers: Keras 3 (Keras 2 raises instead). Lambda and custom layers: all. UpSampling2D: Keras 2.

## Where users met it
tensorflow/tensorflow#41614, tensorflow/tensorflow#48873, tensorflow/tensorflow#50668, keras-team/keras#20931.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity

SEVERITY = Severity.WARNING
RESIZING = ("UpSampling2D",)  # built in; every other built-in layer was seen to return its compute dtype
# Functions of several tensors, whose result has the widest of their dtypes.
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
        promotion = _promotion(layer, half)
        if promotion is not None:
            message, help = promotion
            evidence = {"input_dtypes": list(layer.input_dtypes), "output_dtypes": list(layer.output_dtypes)}
            yield Finding(message, help, layer.made_at, layer=layer.path, evidence=evidence)


def _gives_float32(layer: LayerFacts) -> bool:
    """Whether the layer's output is float32 and goes on to other layers: an output of the model may be float32 on
    purpose."""
    return layer.output_dtypes[:1] == ("float32",) and not layer.is_output and not layer.is_model


def _is_of_library(layer: LayerFacts) -> bool:
    return layer.made_at is None if layer.is_operation else layer.made_by != ""


def _is_wanted(layer: LayerFacts, model: ModelFacts) -> bool:
    """Whether a layer inside it was given float32 on purpose, or a function gets the output of such a layer."""
    if any(inner.compute_dtype not in HALF for inner in model.inside(layer) if inner.floating):
        return True
    return layer.is_operation and _is_given_float32(layer, model)


def _is_given_float32(function: LayerFacts, model: ModelFacts) -> bool:
    """Whether a float32 input comes from a layer that was given float32, as in a stream kept in float32 on purpose."""
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
    subject = f"{layer.path} ({layer.class_name}) computes in {half} and returns float32"
    if layer.class_name in RESIZING and not layer.own_class:
        return (
            f'{subject}: in Keras 2 every interpolation except "nearest" does.',
            'Give it `interpolation="nearest"`, or cast its output.',
        )
    is_loss = len(layer.output_shape) < 2  # Keras' loss objects return float32 by design
    if (layer.class_name == "Lambda" or layer.own_class) and not (layer.names_dtype or is_loss) and layer.autocast:
        return (
            f"{subject}, though its code names no dtype: something in it promotes (`tf.image.resize`, a float32 "
            "constant, a weight that comes first).",
            'Cast its result, `tf.cast(outputs, inputs.dtype)`, or give it `dtype="float32"` if float32 is intended.',
        )
    return None


def _promotion_of_function(function: LayerFacts, half: str) -> tuple[str, str] | None:
    if function.class_name not in PROMOTING:
        return None
    other = "float32" if len(function.input_dtypes) > 1 else "a float32 constant"  # Keras 3.3 forgets which it was
    return (
        f"`{function.class_name.lower()}` gets {half} and {other} here and returns float32: the values stay "
        "float32 until the next layer casts them.",
        f'Use a layer, which casts all its inputs (`keras.layers.Add()`), or cast the float32 one to "{half}".',
    )
