"""Grouped and depthwise convolutions have slow 16-bit kernels on GPUs.

## Why it matters
These convolutions move many numbers and multiply few: tensor cores do not help, and for some shapes cuDNN's
16-bit kernels were slower than its float32 kernels (a factor of 20 was reported). A network made of them gains
little.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [keras.Input((64, 64, 32)), keras.layers.DepthwiseConv2D(3), keras.layers.Dense(1, dtype="float32")]
)
model.compile("adam", "mse")
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [keras.Input((64, 64, 32)), keras.layers.Conv2D(32, 3), keras.layers.Dense(1, dtype="float32")]
)
model.compile("adam", "mse")
```

## Versions
All, on a GPU. One finding names all layers.

## Where users met it
tensorflow/tensorflow#48127, tensorflow/tensorflow#37130.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.gpus import gpus
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.INFO
DEPTHWISE = ("DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D")


def in_model(model: ModelFacts) -> Iterator[Finding]:
    slow = [layer for layer in model.layers if layer.computes_in_half and _is_grouped(layer)]
    if slow and model.is_trained and gpus(model):
        yield Finding(
            f"{listed([layer.path for layer in slow])} {'is a' if len(slow) == 1 else 'are'} grouped or depthwise "
            f"convolution{'' if len(slow) == 1 else 's'}, whose {slow[0].compute_dtype} kernels are slow on a GPU.",
            'Measure both, and give them `dtype="float32"` where that is faster.',
            layer=slow[0].path,
            evidence={"layers": [layer.path for layer in slow]},
        )


def _is_grouped(layer: LayerFacts) -> bool:
    if layer.own_class or not layer.variables:
        return False
    return layer.class_name in DEPTHWISE or (layer.settings.groups or 1) > 1
