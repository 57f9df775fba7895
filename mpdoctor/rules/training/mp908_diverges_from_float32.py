"""The training's loss departs from the loss of the same training in float32.

## Why it matters

Nothing is inf, nothing raises and no step is lost, but the model learns less than it would in float32: a layer
subtracts two large numbers, adds numbers too small to change the sum, or squares numbers whose squares are 0 in
float16. This is measured only by `mpdoctor check --reference`. The training is run twice more from its first
weights, once as it is and once with all layers in float32, on the same batches, with the same random numbers,
without the steps that float16 skipped.

The rule reports a training whose losses over the last third of the steps differ by more than each of three
limits: a tenth of the change of the loss in float32, 8 roundings of the loss itself, and five times the
difference that rounding alone causes (measured by a third training in float32, from first weights that were
rounded to 16 bits).

It also reports a training whose losses, all above 0, differ by more than 2 % of the loss itself, by more than 8
roundings of it, and by twenty times what a fourth training in float32 shows, in which the first weights, the outputs
of the layers that compute in 16 bits and the gradients that arrive there are rounded. So much is lost inside a layer,
where it computes. A loss that falls from a high first value can end a third too high and still be within a tenth of
its change.

Layers are then tried in float32 one at a time, and the first of them together with all others of its class. Where
random numbers cannot be repeated, nothing is reported.

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

All, where a step can be run again, which is not possible in an eager loop.

## Where users met it

Micikevicius et al., Mixed Precision Training (2018), section 3.3: reductions are summed in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite
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
        f"{mean(losses[last]):.4g}" for losses in (divergence.half, divergence.single, divergence.judged_by)
    )
    also = "" if divergence.parts_from_its_change else ", and with all that layers hand on rounded as well,"
    return (
        f"The loss departs from float32's: over the last {steps // 3} of {steps} steps, from the same weights and on "
        f"the same batches, its mean is {half} in {dtype} and {single} in float32. In float32 from weights rounded to "
        f"{dtype}{also} it is {control}."
    )


def _remedy(divergence: DivergenceFacts) -> str:
    alone = [layer for layer in divergence.layers if not layer.beside]
    healing = divergence.healing
    if healing is not None:
        loss = _last(healing, divergence)
        by_itself = next((layer for layer in alone if layer.path == healing.path and healing.beside), None)
        told = f"; with only `{healing.path}` it is {_last(by_itself, divergence)}" if by_itself is not None else ""
        return f'Give {_named(healing)} `dtype="float32"`: in a training with that, the mean is {loss}{told}.'
    tried = " and ".join(f"`{layer.path}`" for layer in alone)
    of_class = [f", nor did {_named(layer)} together" for layer in divergence.layers if layer.beside]
    not_healed = (
        f" {tried}{' alone' if len(alone) == 1 else ', each alone,'} in float32 did not prevent it{''.join(of_class)}."
        if tried
        else ""
    )
    return f"It does not happen with all layers in float32.{not_healed}{_nearest(divergence)}"


def _nearest(divergence: DivergenceFacts) -> str:
    """A sentence on the layer that takes away most of the distance when it computes in float32; "" where none takes
    away half of it."""
    distances = [(divergence.distance_of(layer.losses), number) for number, layer in enumerate(divergence.layers)]
    least, number = min(filter(lambda found: isfinite(found[0]), distances), default=(inf, 0))
    if least > divergence.distance / 2:
        return ""
    layer = divergence.layers[number]
    return f" With {_named(layer)} in float32 the mean is {_last(layer, divergence)}, which is nearer to float32's."


def _named(layer: TriedLayer) -> str:
    return listed([f"`{path}`" for path in layer.paths])


def _last(layer: TriedLayer, divergence: DivergenceFacts) -> str:
    return f"{mean(layer.losses[divergence.last_third]):.4g}"
