"""A softmax gets a row in which everything is masked, and returns NaN.

## Why it matters

softmax divides by the sum of the row. Where a mask has put -inf into every place, that is 0 / 0: one empty
sequence in a batch makes the whole loss NaN, and the step is skipped. -1e9 is -inf in float16, so a mask that
is safe in float32 is not safe under mixed_float16. (Measured: the softmax of a row of -inf is NaN in Keras 3
and tf_keras; Keras' own MultiHeadAttention and Softmax layers mask with a finite number and are safe.)

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Weigh(tf.keras.layers.Layer):
    def call(self, x):
        scores = tf.where(x > 0, x, tf.cast(-np.inf, x.dtype))  # a row without a number above 0 has nothing left
        return tf.nn.softmax(scores)


x = np.random.uniform(0.1, 1, (640, 8)).astype("float32")
x[::64] = 0
model = tf.keras.Sequential([Weigh(), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(x, x[:, :1], epochs=3)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Weigh(tf.keras.layers.Layer):
    def call(self, x):
        scores = tf.where(x > 0, x, tf.cast(-1e4, x.dtype))
        return tf.nn.softmax(scores)


x = np.random.uniform(0.1, 1, (640, 8)).astype("float32")
x[::64] = 0
model = tf.keras.Sequential([Weigh(), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(x, x[:, :1], epochs=3)
```

## Versions

All.

## Where users met it

huggingface/transformers#31989.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.broken_operations import is_emptied_softmax
from mpdoctor.semantics.live.training_texts import line_of

SEVERITY = Severity.WARNING
EXPLAINS = {"MP907": "model"}


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    operation, culprit = training.broken_operation, training.culprit
    if operation is None or not is_emptied_softmax(operation):
        return
    layer = culprit.overflow if culprit else None
    place = f"In layer `{layer.layer}` ({layer.layer_class})" if layer else "Outside of all layers"
    step = f", {training.moment(culprit.step)}" if culprit else ""
    location = (culprit.overflow.location if culprit else None) or operation.location or training.model.call.location
    line = line_of(operation, location)
    yield Finding(
        f"{place} a softmax{line} gets a row in which every value is -inf{step}: it computes 0 / 0, which is NaN. "
        "A mask covers that whole row; a mask of -1e9 is -inf in float16 too.",
        "Mask with a number that float16 holds, `tf.where(mask, scores, tf.cast(-1e4, scores.dtype))`, or leave "
        "out rows that are nothing but padding.",
        location,
        model=training.model.id,
        layer=culprit.overflow.layer if culprit else None,
        evidence={"operation": operation.name},
    )
