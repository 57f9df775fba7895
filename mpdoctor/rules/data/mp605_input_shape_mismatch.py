"""The data does not fit the model, or a layer reshapes what it should refuse.

## Why it matters

The first step raises, with a message about shapes deep inside TensorFlow. It has nothing to do with precision; it is
told here because it is what stands between you and a training.

## Flagged

```python
import numpy as np
import tensorflow as tf


class ToPicture(tf.keras.layers.Layer):
    def call(self, x):
        return tf.reshape(x, (-1, 28, 28, 1))  # whatever it gets; 100 values are no picture


model = tf.keras.Sequential([tf.keras.Input((100,)), ToPicture(), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(np.random.rand(32, 100), np.random.rand(32, 1))
```

## Fixed

```python
import numpy as np
import tensorflow as tf


class ToPicture(tf.keras.layers.Layer):
    def call(self, x):
        return tf.reshape(x, (-1, 28, 28, 1))


model = tf.keras.Sequential([tf.keras.Input((784,)), ToPicture(), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(np.random.rand(32, 784), np.random.rand(32, 1))
```

## Versions

All.

## Where users met it

No one report: the most frequent error of all.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.errors.error_texts import place_of_failure
from mpdoctor.semantics.live.errors.shape_errors import shape_error_from_message

SEVERITY = Severity.ERROR
FAILS_IN = ("model", "training")
NEVER_WHAT_IF = True


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    error = shape_error_from_message(failure.said_by_library)
    if error is None:
        return
    place = place_of_failure(failure)
    yield Finding(
        f"Shapes do not fit{f' in {place}' if place else ''}: {error.words}.",
        error.remedy,
        failure.location,
        layer=failure.layer,
        evidence={"expected": error.expected, "actual": error.actual, "exception": failure.exception},
    )
