"""After the loss scale has found its place, steps go on being skipped.

## Why it matters

A dynamic loss scale is meant to be too high now and then: the first steps, and one step a growth interval (2000), are
skipped by design. If more are skipped, some batches have gradients far larger than the others. Each of them is lost
to the training and halves the scale for all the others, whose small gradients then sink into float16's subnormal
numbers.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
generator = np.random.default_rng(0)
x = generator.normal(size=(640, 8)).astype("float32")
y = generator.normal(size=(640, 1)).astype("float32")
y[::64] = 1e10  # a few targets in another unit
model = tf.keras.Sequential([tf.keras.layers.Dense(16, "tanh"), tf.keras.layers.Dense(1, dtype="float32")])
model.compile(tf.keras.optimizers.Adam(1e-6), "mse")
model.fit(x, y, batch_size=32, epochs=5)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
generator = np.random.default_rng(0)
x = generator.normal(size=(640, 8)).astype("float32")
y = generator.normal(size=(640, 1)).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(16, "tanh"), tf.keras.layers.Dense(1, dtype="float32")])
model.compile(tf.keras.optimizers.Adam(1e-6), "mse")
model.fit(x, y, batch_size=32, epochs=5)
```

## Versions

All.

## Where users met it

keras-team/keras#16100.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity, Verdict
from mpdoctor.rules.training.verdict import verdict_from_training
from mpdoctor.rules.training.words import culprit_evidence, remedy_from_culprit, story_of_gradient

SEVERITY = Severity.WARNING


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    if verdict_from_training(training)[0] is not Verdict.OVERFLOWING:
        return
    first = next(i for i, step in enumerate(training.steps) if step.applied)
    skips = [i for i, step in enumerate(training.steps) if i > first and not step.applied]
    found = training.gradient_culprit
    variable = training.steps[skips[-1]].first_nonfinite
    place = (found.operation.location if found and found.operation else None) or training.model.call.location
    yield Finding(
        f"{len(skips)} of {len(training.steps) - first} steps were skipped after the loss scale had found its place"
        + (f": {story_of_gradient(found, place)}" if found else _variable(variable)),
        _remedy(training),
        place,
        model=training.model.id,
        layer=found.layer if found and found.layer else None,
        evidence={**culprit_evidence(training), "skipped_steps": [i + 1 for i in skips]},
    )


def _variable(path: str | None) -> str:
    return f"; inf or NaN came first in the gradient of `{path}`." if path else "."


def _remedy(training: TrainingFacts) -> str:
    if training.broken_operation is not None:
        return remedy_from_culprit(training)
    return (
        "Look at the batches of these steps for values far beyond the others, clip or standardise them, or compute "
        'that layer in float32 (dtype="float32").'
    )
