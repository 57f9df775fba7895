"""The model is too small, or casts too often, to gain speed from 16 bits on this GPU.

## Why it matters
Starting an operation on a GPU takes some microseconds, however small it is. A model with fewer than 250,000
multiplications per example finishes each operation before the next one has started, in float32 and in float16
alike, and each change of dtype is one more operation. Where layers in float32 and in 16 bits alternate, there
are more casts than products.

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
All, on a GPU. The multiplications are counted from the weights and the sizes of the outputs. Where a size is
unknown, as with recurrent layers, nothing is reported.

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
            f"This model does {total:,} multiplications per example: a GPU spends its time on starting operations, "
            "which 16 bits do not make faster.",
            "Train it in float32, or with larger layers and batches.",
            evidence={"multiplications": total},
        )
    elif casts > len(layers):
        yield Finding(
            f"{casts} layers get another dtype than they compute in, and only {len(layers)} multiply matrices in 16 "
            "bits: the casts may cost more than the products gain.",
            "Keep neighbouring layers in one dtype, and only the last layer in float32.",
            evidence={"casts": casts, "products": len(layers)},
        )


def _multiplications(layer: LayerFacts) -> int | None:
    """A layer's multiplications for one example; None where the number of positions or steps is unknown."""
    places = layer.output_shape[1:-1]
    if layer.class_name in RECURRENT or not layer.output_shape or None in places:
        return None
    return sum(size for _, size, _ in layer.variables) * math.prod(place for place in places if place is not None)


def _casts(layer: LayerFacts) -> bool:
    """Whether the layer casts its input."""
    given = {dtype for dtype in layer.input_dtypes if dtype in FLOATS}
    return not layer.is_operation and not layer.is_model and bool(given - {layer.compute_dtype})
