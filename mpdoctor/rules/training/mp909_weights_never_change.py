"""Steps were applied, and no trainable variable moved.

## Why it matters

The training runs, the loss is printed, and the model learns nothing. In 16 bits that happens when every gradient is
flushed to 0 (float16 holds nothing below 6e-8, so small gradients need a loss scale), or when the weights themselves
are float16 and each update is smaller than half their last digit (measured: SGD with 1e-4 on float16 weights, 20
epochs, a change of exactly 0).

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("float16")  # not mixed: the weights are float16, too
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
model.compile(tf.keras.optimizers.SGD(1e-5), "mse")
model.fit(np.random.rand(64, 4), np.random.rand(64, 1), epochs=20)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, use_bias=False, dtype="float32")])
model.compile(tf.keras.optimizers.SGD(1e-5), "mse")
model.fit(np.random.rand(64, 4), np.random.rand(64, 1), epochs=20)
```

## Versions

All.

## Where users met it

keras-team/keras#9582, keras-team/keras#11860, tensorflow/tensorflow#38457.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity, Verdict
from mpdoctor.rules.training.verdict import verdict_from_training

SEVERITY = Severity.ERROR


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    if verdict_from_training(training)[0] is not Verdict.NO_UPDATE:
        return
    applied = sum(step.applied for step in training.steps)
    yield Finding(
        f"{applied} steps were applied and not one trainable variable changed. {_why(training)}",
        _remedy(training),
        training.model.call.location,
        model=training.model.id,
    )


def _has_half_weights(training: TrainingFacts) -> bool:
    return any(
        dtype in ("float16", "bfloat16") and trainable
        for layer in training.model.layers
        for dtype, _, trainable in layer.variables
    )


def _why(training: TrainingFacts) -> str:
    if _has_half_weights(training):
        return "The weights are stored in 16 bits: an update below half of their last digit is rounded away."
    if training.initial_scale is not None and training.model.computes_in_half:
        return (
            f"With a loss scale of {training.initial_scale:g} the float16 gradients are all flushed to 0 (below 6e-8)."
        )
    return "Either every gradient is 0 or the learning rate is."


def _remedy(training: TrainingFacts) -> str:
    if _has_half_weights(training):
        return 'Keep float32 weights: set_global_policy("mixed_float16") instead of "float16".'
    if training.initial_scale is not None and training.model.computes_in_half:
        return "Leave out initial_scale: the default of 32768 lifts small gradients into float16's range."
    return "Look at the learning rate, at layers set to trainable=False, and at what the loss depends on."
