"""The loss scale is at its floor of 1 and every step is skipped, so nothing is trained.

## Why it matters

Keras 2 halves the loss scale after every step with an inf or NaN gradient, but never below 1. If the gradients
are not finite even at a scale of 1, the scale is not the cause: something in the model or the loss overflows by
itself. Every step is skipped from then on, without any message; the loss stands still or is NaN (measured: no
weight changes in 50 steps).

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
large = tf.keras.initializers.Constant(200.0)
model = tf.keras.Sequential(
    [
        tf.keras.Input((4,)),
        tf.keras.layers.Dense(8, kernel_initializer=large),
        tf.keras.layers.Dense(8, kernel_initializer=large),  # 200 · 200 · 8 · 4 is beyond 65504
        tf.keras.layers.Dense(1, dtype="float32"),
    ]
)
model.compile("sgd", "mse")
model.fit(np.ones((64, 4)), np.ones((64, 1)), epochs=20)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential(
    [
        tf.keras.Input((4,)),
        tf.keras.layers.Dense(8),
        tf.keras.layers.Dense(8),
        tf.keras.layers.Dense(1, dtype="float32"),
    ]
)
model.compile("sgd", "mse")
model.fit(np.ones((64, 4)), np.ones((64, 1)), epochs=20)
```

## Versions

Keras 2 (tf.keras to TensorFlow 2.15, tf_keras). Keras 3 has no floor: see MP903.

## Where users met it

keras-team/keras#16100 (= keras-team/tf-keras#644), tensorflow/tensorflow#38357.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity, Verdict
from mpdoctor.semantics.live.second_training import remedies_to_report
from mpdoctor.semantics.live.training_remedies import remedy_from_culprit
from mpdoctor.semantics.live.training_texts import culprit_evidence, why_from_culprit
from mpdoctor.semantics.live.verdict import verdict_from_training

SEVERITY = Severity.ERROR
KERAS = ("2",)
EXPLAINS = {"MP905": "model", "MP909": "model"}
TELLS_OF_DIVERGENCE = 2


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    if training.dynamic is False or verdict_from_training(training)[0] is not Verdict.STUCK:
        return  # MP911 reports a fixed scale
    skipped = sum(not step.applied for step in training.steps)
    yield Finding(
        f"{skipped} of {len(training.steps)} steps were skipped: the loss scale fell from "
        f"{training.initial_scale:g} to its floor of {training.floor:g}, and every gradient is still inf or NaN. "
        f"Nothing is trained.{why_from_culprit(training)}",
        remedy_from_culprit(training),
        training.model.call.location,
        model=training.model.id,
        evidence=culprit_evidence(training),
        remedies=remedies_to_report(training),
    )
