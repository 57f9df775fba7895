"""The loss of the training leaves that of the same training in float32.

## Why it matters

Nothing is inf, nothing raises and no step is lost, and the model learns less than it would in float32: a layer
subtracts two large numbers, adds up what is too small to be added, or squares what is 0 then. It is measured with
`mpdoctor check --reference` alone. The training is run once more from its first weights as it is, and with all layers
in float32: on the same batches, with the same random numbers, without the steps that float16 skipped. It is told where
the losses of the last third of the steps lie further apart than a tenth of what the loss changes by in float32, than
8 roundings of the loss itself, and than five times what rounding alone brings about: a third training in float32, from
first weights that were rounded to 16 bits. Layers are tried in float32 one at a time, then the first of them together
with all others of its class. Where random numbers cannot be repeated, nothing is said.

## Flagged

```python
import numpy as np
import tensorflow as tf


class Shifted(tf.keras.layers.Layer):
    def call(self, x):
        return (x + 2048.0) - 2048.0  # float16 has no numbers between 2048 and 2050


tf.keras.mixed_precision.set_global_policy("mixed_float16")
tf.keras.utils.set_random_seed(3)
x = np.random.rand(640, 8).astype("float32")
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(32, "tanh"),
        Shifted(),
        tf.keras.layers.Dense(16, "tanh"),
        tf.keras.layers.Dense(1, dtype="float32"),
    ]
)
model.compile(tf.keras.optimizers.Adam(1e-2), "mse")
model.fit(x, x[:, :1] * 2 - x[:, 1:2], batch_size=32, epochs=5)
```

## Fixed

```python
import numpy as np
import tensorflow as tf


class Shifted(tf.keras.layers.Layer):
    def call(self, x):
        return (x + 2048.0) - 2048.0


tf.keras.mixed_precision.set_global_policy("mixed_float16")
tf.keras.utils.set_random_seed(3)
x = np.random.rand(640, 8).astype("float32")
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(32, "tanh"),
        Shifted(dtype="float32"),
        tf.keras.layers.Dense(16, "tanh"),
        tf.keras.layers.Dense(1, dtype="float32"),
    ]
)
model.compile(tf.keras.optimizers.Adam(1e-2), "mse")
model.fit(x, x[:, :1] * 2 - x[:, 1:2], batch_size=32, epochs=5)
```

## Versions

All, where a step can be run once more: not in an eager loop.

## Where users met it

Micikevicius et al., Mixed Precision Training (2018), section 3.3: reductions are added up in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from mpdoctor.facts.divergence import DivergenceFacts, TriedLayer
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.verdict import finds_its_scale
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.WARNING


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    divergence = None if training.reference is None else training.reference.divergence
    if divergence is None or not divergence.diverges or not finds_its_scale(training):
        return
    healing, last = divergence.healing, divergence.last_third
    yield Finding(
        _story(divergence),
        _remedy(divergence),
        training.model.call.location,
        model=training.model.id,
        layer=None if healing is None else healing.path,
        evidence={
            "half": mean(divergence.half[last]),
            "float32": mean(divergence.single[last]),
            "distance": divergence.distance,
            "control": divergence.control,
            "steps": len(divergence.steps),
            "tried_layers": {layer.path: mean(layer.losses[last]) for layer in divergence.layers if not layer.beside},
            "healing_layers": [] if healing is None else list(healing.paths),
        },
    )


def _story(divergence: DivergenceFacts) -> str:
    last, steps, dtype = divergence.last_third, len(divergence.steps), divergence.dtype
    half, single, control = (
        f"{mean(losses[last]):.4g}" for losses in (divergence.half, divergence.single, divergence.rounded)
    )
    return (
        f"The loss leaves float32's: over the last {steps // 3} of {steps} steps, from the same weights and on the "
        f"same batches, its mean is {half} in {dtype} and {single} in float32. In float32 from weights rounded to "
        f"{dtype} it is {control}."
    )


def _remedy(divergence: DivergenceFacts) -> str:
    alone = [layer for layer in divergence.layers if not layer.beside]
    healing = divergence.healing
    if healing is not None:
        loss = _last(healing, divergence)
        by_itself = next((layer for layer in alone if layer.path == healing.path and healing.beside), None)
        told = f"; with `{healing.path}` alone it is {_last(by_itself, divergence)}" if by_itself is not None else ""
        return f'Give {_named(healing)} `dtype="float32"`: trained so, the loss is {loss} there{told}.'
    tried = " and ".join(f"`{layer.path}`" for layer in alone)
    of_class = [f", and {_named(layer)} together did not" for layer in divergence.layers if layer.beside]
    not_healed = (
        f" In float32, {tried} alone {'did' if len(alone) == 1 else 'did each'} not heal it{''.join(of_class)}."
        if tried
        else ""
    )
    return f"With all layers in float32 it does not happen.{not_healed}"


def _named(layer: TriedLayer) -> str:
    return listed([f"`{path}`" for path in layer.paths])


def _last(layer: TriedLayer, divergence: DivergenceFacts) -> str:
    return f"{mean(layer.losses[divergence.last_third]):.4g}"
