"""Inside a model that computes in 16 bits, a nested model or a layer with many weights keeps float32, or
another policy.

## Why it matters
The island runs at float32 speed and memory, and its neighbours are cast back and forth. A pretrained part
that was loaded or built before the policy was set stays float32 for ever: measured in Keras 3.15, tf_keras
2.21 and TensorFlow 2.15, the outer model is mixed and the nested one is not. A whole tail in float32 (the
last layers before the output) is on purpose and not reported, and neither are normalization,
preprocessing, and a single layer that was given `dtype="float32"` under a mixed policy: that is the remedy for
values that leave float16.

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
from mpdoctor.knowledge.half_dtypes import HALF
from mpdoctor.knowledge.layer_kinds import NORMALIZATION, PREPROCESSING
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.WARNING
NEVER_RAISES = True
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
        if not is_island or layer.class_name in ON_PURPOSE or not layer.floating or _is_asked_for(model, layer):
            continue
        told.append(layer.path)
        neighbour = _neighbour(model, half, index)
        yield Finding(
            f"{layer.path} ({layer.class_name}, {sum(weights):,} weights) computes in {_dtypes([layer, *inside])} "
            f"inside a model that computes in {neighbour.compute_dtype}: it runs at float32 speed and memory.",
            "Build or load it after the policy is set, or give it the policy of its neighbours: "
            f'`dtype="mixed_{neighbour.compute_dtype}"`.',  # nobody is sent into a pure half policy (MP107)
            layer.made_at,
            layer=layer.path,
            evidence={"policies": {one.path: one.policy for one in model.layers if one.floating and one.policy}},
        )


def _is_asked_for(model: ModelFacts, layer: LayerFacts) -> bool:
    """One layer that was told `dtype="float32"` under a mixed policy: its values may leave float16 (MP904)."""
    is_mixed = model.policy_set and model.global_policy.startswith("mixed_")
    return is_mixed and layer.given_dtype and not layer.is_model and not layer.made_by


def _neighbour(model: ModelFacts, half: list[int], index: int) -> LayerFacts:
    """The nearest layer that computes in 16 bits; an output only where nothing else does."""
    inner = [other for other in half if not model.layers[other].is_output] or half
    return model.layers[min(inner, key=lambda other: abs(other - index))]


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
