"""The model is too small, or casts too often, to gain speed from 16 bits on this GPU.

## Why it matters
Starting an operation on a GPU takes some microseconds, however small it is. A model with fewer than 250,000
multiplications an example is done before its next operation has started, in float32 as in float16, and each change
of dtype is an operation more. Where layers in float32 and in 16 bits take turns, more casts than products run.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [keras.Input((8,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1, dtype="float32")]
)
model.compile("adam", "mse")
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [keras.Input((1024,)), keras.layers.Dense(4096, "relu"), keras.layers.Dense(1, dtype="float32")]
)
model.compile("adam", "mse")
```

## Versions
All, on a GPU. The multiplications are counted from the weights and the sizes of the outputs; where one is not known,
as with recurrent layers, nothing is said.

## Where users met it
tensorflow/tensorflow#34406, tensorflow/tensorflow#40397, keras-team/keras#9594.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.gpus import RECURRENT, gpus, multiplying

SEVERITY = Severity.INFO
FEW = 250_000
FLOATS = ("float16", "bfloat16", "float32", "float64")


def in_model(model: ModelFacts) -> Iterator[Finding]:
    layers = multiplying(model)
    if not model.is_trained or not gpus(model) or not layers:
        return
    products = [_multiplications(layer) for layer in layers]
    total = sum(product for product in products if product is not None)
    casts = sum(_casts(layer) for layer in model.layers)
    if None not in products and total < FEW:
        yield Finding(
            f"This model multiplies {total:,} times an example: a GPU spends its time on starting operations, and 16 "
            "bits make none of them faster.",
            "Train it in float32, or with larger layers and batches.",
            evidence={"multiplications": total},
        )
    elif casts > len(layers):
        yield Finding(
            f"{casts} layers are given another dtype than they compute in, and {len(layers)} multiply matrices in 16 "
            "bits: the casts may cost more than the products gain.",
            "Keep neighbouring layers in one dtype; float32 for the last one only.",
            evidence={"casts": casts, "products": len(layers)},
        )


def _multiplications(layer: LayerFacts) -> int | None:
    """For one example; None where nobody knows in how many places or steps the layer multiplies."""
    places = layer.output_shape[1:-1]
    if layer.class_name in RECURRENT or not layer.output_shape or None in places:
        return None
    return sum(size for _, size, _ in layer.variables) * math.prod(place for place in places if place is not None)


def _casts(layer: LayerFacts) -> bool:
    """Whether it casts what it is given."""
    given = {dtype for dtype in layer.input_dtypes if dtype in FLOATS}
    return not layer.is_operation and not layer.is_model and bool(given - {layer.compute_dtype})
