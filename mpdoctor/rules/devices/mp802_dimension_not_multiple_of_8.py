"""A number of units, channels or words is not a multiple of 8, the tile size of tensor cores.

## Why it matters
Tensor cores multiply 16-bit matrices in tiles of 8. A dimension of 1001 is padded, copied, or computed without
them. The batch size counts too. The last layer is left out, because the task determines its size.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [keras.Input((1024,)), keras.layers.Dense(4097, "relu"), keras.layers.Dense(1, dtype="float32")]
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
All, on GPUs with tensor cores. Newer libraries pad by themselves and lose less. One finding names all layers.

## Where users met it
tensorflow/tensorflow#34406; NVIDIA's guide to mixed precision.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.gpus import multiplying, trains_on_tensor_cores
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.INFO
TILE = 8
SMALL = 64  # a narrower layer costs little in any case


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not trains_on_tensor_cores(model):
        return
    odd = [layer for layer in multiplying(model) if not layer.is_output and _width(layer) % TILE]
    odd = [layer for layer in odd if _width(layer) > SMALL]
    if odd:
        wider = -(-_width(odd[0]) // TILE) * TILE
        yield Finding(
            f"{listed([f'{layer.path} ({_width(layer)})' for layer in odd])} "
            f"{'has' if len(odd) == 1 else 'have'} a width that is not a multiple of {TILE}: tensor cores work in "
            f"tiles of {TILE}.",
            f"Round it up: {wider} instead of {_width(odd[0])}.",
            layer=odd[0].path,
            evidence={"widths": {layer.path: _width(layer) for layer in odd}},
        )


def _width(layer: LayerFacts) -> int:
    return layer.settings.width or 0
