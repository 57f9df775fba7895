"""A nested model or a large layer keeps float32, or another policy, inside a model that computes in 16 bits.

## Why it matters
The float32 part runs at float32's speed and memory, and values are cast on their way in and out. A pretrained
part that was loaded or built before the policy was set stays float32 while the model around it is mixed
(measured in Keras 3.15, tf_keras 2.21 and TensorFlow 2.15). Not reported: a float32 tail (the last layers
before the output), normalization, preprocessing, and a single layer that was given `dtype="float32"` under a
mixed policy, which is the remedy for values outside float16's range.

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

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.layer_kinds import NORMALIZATION, PREPROCESSING
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.WARNING
NEVER_RAISES = True
ON_PURPOSE = NORMALIZATION | PREPROCESSING | {"Embedding"}


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained:
        return
    half = [index for index, layer in enumerate(model.layers) if _computes_in_half(layer)]
    for index, layer in _islands(model, half):
        neighbour = _neighbour(model, half, index)
        held = [layer, *model.inside(layer)]
        yield Finding(
            f"{layer.path} ({layer.class_name}, {sum(_trainable(held)):,} weights) computes in {_dtypes(held)} "
            f"inside a model that computes in {neighbour.compute_dtype}: it runs at float32's speed and memory.",
            _help(layer, neighbour),
            layer.made_at,
            layer=layer.path,
            evidence={
                "policies": {other.path: other.policy for other in model.layers if other.floating and other.policy}
            },
        )


def _help(island: LayerFacts, neighbour: LayerFacts) -> str:
    """The help text. A nested model's layers take no dtype from it, and a pure half policy is never advised (MP107)."""
    policy = f"mixed_{neighbour.compute_dtype}"
    if island.is_model:
        return f'Build or load it after `set_global_policy("{policy}")`.'
    return f'Build it after the policy is set, or give it the policy of its neighbours: `dtype="{policy}"`.'


def _islands(model: ModelFacts, half: list[int]) -> Iterator[tuple[int, LayerFacts]]:
    """The nested models and layers in another dtype before the last 16-bit layer, with their positions; where one holds
    another, only the outermost."""
    outer: list[LayerFacts] = []
    for index, layer in enumerate(model.layers[: half[-1] + 1] if half else ()):
        is_inner = any(layer.path.startswith(island.path + "/") for island in outer)
        if not is_inner and _is_island(model, layer) and not _is_meant(model, layer):
            outer.append(layer)
            yield index, layer


def _computes_in_half(layer: LayerFacts) -> bool:
    return layer.compute_dtype in HALF and layer.floating and not layer.is_operation


def _is_island(model: ModelFacts, layer: LayerFacts) -> bool:
    """Whether a layer or nested model has weights and no part that computes in 16 bits."""
    inside = model.inside(layer)
    computing = inside if layer.is_model else [layer]
    is_whole = bool(inside) == layer.is_model  # the layers inside another layer are each judged by themselves
    return (
        is_whole and bool(_trainable([layer, *inside])) and all(inner.compute_dtype not in HALF for inner in computing)
    )


def _is_meant(model: ModelFacts, layer: LayerFacts) -> bool:
    """Whether its dtype is deliberate: an output, no floating-point computation, or a dtype that was asked for."""
    is_end = layer.is_output or layer.ends_submodel
    return is_end or layer.class_name in ON_PURPOSE or not layer.floating or _is_asked_for(model, layer)


def _is_asked_for(model: ModelFacts, layer: LayerFacts) -> bool:
    """Whether it was given `dtype="float32"` under a mixed policy, the remedy of MP904, or is inside a layer that was,
    such as a MultiHeadAttention or a Bidirectional."""
    is_mixed = model.policy_set and model.global_policy.startswith("mixed_")
    holding = (outer for outer in model.layers if layer.path.startswith(f"{outer.path}/"))
    return is_mixed and not layer.is_model and any(map(_is_given_float32, (layer, *holding)))


def _is_given_float32(layer: LayerFacts) -> bool:
    return layer.given_dtype and not layer.is_model and not layer.made_by and layer.compute_dtype not in HALF


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
