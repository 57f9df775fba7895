"""A fixed loss scale is too large, and gradients become inf or NaN.

## Why it matters

A fixed scale is never lowered, and the gradients are not checked: Keras 2 (`dynamic=False`) and Keras 3 (an
optimizer's `loss_scale_factor`) apply them even if they are inf. One overflow writes inf or NaN into the
weights, and the training is ruined.

## Flagged

```python
# keras: 3
import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
x, y = np.random.rand(64, 4), 1000 * np.random.rand(64, 1)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
keras.mixed_precision.set_global_policy("float32")  # compile() makes no LossScaleOptimizer
model.dtype_policy = "float32"
model.compile(keras.optimizers.SGD(1e-6, loss_scale_factor=1e6), "mse")
model.fit(x, y, epochs=20)
```

## Fixed

```python
# keras: 3
import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
x, y = np.random.rand(64, 4), 1000 * np.random.rand(64, 1)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
model.compile(keras.optimizers.SGD(1e-6), "mse")  # compile() wraps it: a dynamic loss scale
model.fit(x, y, epochs=20)
```

## Versions

All.

## Where users met it

keras-team/keras-core#571.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.training_texts import culprit_evidence
from mpdoctor.semantics.live.tried_remedies import after_scale_trial

SEVERITY = Severity.ERROR
EXPLAINS = {"MP905": "model", "MP907": "model", "MP909": "model"}


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    if training.dynamic is not False or training.broken_by_device:
        return
    first = next((i for i, step in enumerate(training.steps) if step.first_nonfinite), None)
    if first is None or not math.isfinite(training.steps[first].loss or 0.0):
        return
    culprit = training.gradient_culprit
    variable = culprit.variable if culprit and culprit.variable else training.steps[first].first_nonfinite
    kind = "loss_scale_factor" if training.uses_loss_scale_factor else "fixed loss scale"
    became = "it was applied to the weights" if training.steps[first].applied else "the step was skipped"
    yield Finding(
        f"The {kind} of {training.initial_scale:g} is too large: at step {first + 1} the gradient of "
        f"`{variable}` is inf or NaN, and {became}."
        f"{_layer_that_overflows(training)}",
        after_scale_trial(
            training,
            "Use a dynamic loss scale, `LossScaleOptimizer(optimizer)`, which skips such a step and is then lowered, "
            "or a smaller fixed one",
        ),
        training.model.call.location,
        model=training.model.id,
        evidence={**culprit_evidence(training), "step": first + 1, "weights_finite": training.weights_finite},
        remedies=tuple(remedy for remedy in training.remedies if remedy.kind == "smaller-scale"),
    )


def _layer_that_overflows(training: TrainingFacts) -> str:
    culprit = training.gradient_culprit
    return f" It overflows in layer `{culprit.layer}`." if culprit is not None and culprit.layer else ""
