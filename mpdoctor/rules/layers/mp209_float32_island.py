"""Inside a model that computes in 16 bits, a nested model or a layer with many weights keeps float32, or
another policy.

## Why it matters
The island runs at float32 speed and memory, and its neighbours are cast back and forth. A pretrained part
that was loaded or built before the policy was set stays float32 for ever: measured in Keras 3.15, tf_keras
2.21 and TensorFlow 2.15, the outer model is mixed and the nested one is not. A whole tail in float32 (the
last layers before the output) is on purpose and not reported, and neither are normalization and
preprocessing.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("float32")
base = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8)])
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([base, keras.layers.Dense(16), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
base = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8)])
model = keras.Sequential([base, keras.layers.Dense(16), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
```

## Versions
All.

## Where users met it
tensorflow/hub#466, tensorflow/hub#854, zzh8829/yolov3-tf2#243.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import LayerFacts, ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.layers.kinds import NORMALIZATION, PREPROCESSING
from mpdoctor.rules.wording import listed

SEVERITY = Severity.WARNING
MIXED = {"float16": "mixed_float16", "bfloat16": "mixed_bfloat16"}  # nobody is sent into a pure half policy (MP107)
HALF = ("float16", "bfloat16")
ON_PURPOSE = NORMALIZATION | PREPROCESSING | {"Embedding"}


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained:
        return
    half = [
        index
        for index, layer in enumerate(model.layers)
        if layer.compute_dtype in HALF and layer.floating and not layer.is_operation
    ]
    if not half:
        return
    told: list[str] = []
    for index, layer in enumerate(model.layers):
        inside = [one for one in model.layers if one.path.startswith(layer.path + "/")]
        if (
            index > half[-1]
            or layer.is_output
            or layer.ends_submodel
            or any(layer.path.startswith(path + "/") for path in told)
        ):
            continue
        weights = _trainable([layer, *inside])
        if layer.is_model:
            is_island = bool(weights) and bool(inside) and not any(one.compute_dtype in HALF for one in inside)
        else:
            is_island = bool(weights) and not inside and layer.compute_dtype not in HALF
        if not is_island or layer.class_name in ON_PURPOSE or not layer.floating:
            continue
        told.append(layer.path)
        around = [model.layers[other] for other in half if not model.layers[other].is_output][:1] or [
            model.layers[half[0]]
        ]
        yield Finding(
            f"{layer.path} ({layer.class_name}, {sum(weights):,} weights) computes in {_dtypes([layer, *inside])} "
            f"inside a model that computes in {around[0].compute_dtype}: it runs at float32 speed and memory.",
            "Build or load it after the policy is set, or give it the policy of its neighbours: "
            f'`dtype="{MIXED.get(around[0].policy, around[0].policy)}"`.',
            layer.made_at,
            layer=layer.path,
            evidence={"policies": {one.path: one.policy for one in model.layers if one.floating and one.policy}},
        )


def _trainable(layers: list[LayerFacts]) -> list[int]:
    return [
        count
        for layer in layers
        if layer.class_name not in ON_PURPOSE
        for _, count, trains in layer.variables
        if trains
    ]


def _dtypes(layers: list[LayerFacts]) -> str:
    return listed(list(dict.fromkeys(layer.compute_dtype for layer in layers if layer.floating)) or ["float32"])
