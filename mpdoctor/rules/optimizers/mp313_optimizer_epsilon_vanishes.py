"""The optimizer keeps its state in float16, where its epsilon is 0 or too small to divide by.

## Why it matters

Adam divides by the root of the squared gradients plus an epsilon. With a "float16" policy (not "mixed_float16")
the weights are float16, and so is the optimizer's state: the square of a gradient below 2.4e-4 is 0 there, and
so is an epsilon below 3e-8. Then Adam divides 0 by 0, and the weight becomes NaN (measured with
Adam(epsilon=1e-8) and gradients of about 0.01, in Keras 3 and tf_keras: the loss is NaN after the first steps).
The default, 1e-7, is stored as 1.2e-7, but 1 / 1.2e-7 is beyond 65504: a weight with a tiny gradient takes a
huge step.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("float16")  # not mixed: weights and optimizer state are float16, too
x = np.random.normal(size=(640, 8)).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(1e-3, epsilon=1e-8), "mse")
model.fit(x, 0.01 * x[:, :1], epochs=3)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.normal(size=(640, 8)).astype("float32")
model = tf.keras.Sequential(
    [tf.keras.Input((8,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1, dtype="float32")]
)
model.compile(tf.keras.optimizers.Adam(1e-3, epsilon=1e-8), "mse")
model.fit(x, 0.01 * x[:, :1], epochs=3)
```

## Versions

All.

## Where users met it

keras-team/keras#9582, keras-team/keras#11860.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import NO_RECIPROCAL, ROUNDED_TO_ZERO
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity

SEVERITY = Severity.ERROR
EXPLAINS = {"MP907": "model"}
HELP = (
    'Keep weights and optimizer state in float32: the policy "mixed_float16" instead of "float16". '
    "If they must be float16, use epsilon=1e-4."
)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    epsilon = _epsilon(model)
    if epsilon is None or not 0 <= epsilon < ROUNDED_TO_ZERO:
        return
    yield Finding(
        f"{_name(model)} keeps its state in float16, like the weights, and its epsilon of {epsilon:g} is 0 in float16: "
        "where the square of a gradient is 0 as well, it divides 0 by 0.",
        HELP,
        _place(model),
        evidence={"epsilon": epsilon},
    )


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    epsilon, broken = _epsilon(training.model), _first_broken_loss(training)
    if epsilon is None or epsilon >= NO_RECIPROCAL or (broken is None and training.weights_finite is not False):
        return
    if broken == 0 or any(step.first_nonfinite for step in training.steps[:broken]):
        return  # the loss or a gradient was not finite before any weight was changed
    first = "" if broken is None else f" at step {broken + 1}"
    problem = "is 0 in float16" if epsilon < ROUNDED_TO_ZERO else "is too small to divide by in float16"
    yield Finding(
        f"{_name(training.model)} keeps its state in float16, like the weights, and its epsilon of {epsilon:g} "
        f"{problem}: the weights are inf or NaN{first}, although every gradient before was finite.",
        HELP,
        _place(training.model) or training.model.call.location,
        model=training.model.id,
        evidence={"epsilon": epsilon},
    )


def _first_broken_loss(training: TrainingFacts) -> int | None:
    """The number, from 0 on, of the first step whose loss is not finite."""
    losses = enumerate(step.loss for step in training.steps)
    return next((number for number, loss in losses if loss is not None and not math.isfinite(loss)), None)


def _epsilon(model: ModelFacts) -> float | None:
    """The epsilon of the innermost optimizer, where it trains float16 weights."""
    half = any(dtype == "float16" and trainable for layer in model.layers for dtype, _, trainable in layer.variables)
    if not half or not model.optimizer:
        return None
    return model.optimizer[-1].epsilon


def _name(model: ModelFacts) -> str:
    return model.optimizer[-1].class_name


def _place(model: ModelFacts) -> Location | None:
    return model.optimizer[-1].made_at or model.call.location
