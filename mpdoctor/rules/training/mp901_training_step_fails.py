"""The training step raised an error.

## Why it matters

Nothing trains until it is mended. The report names the line of yours and the layer that were running and says the error
in words. Where another rule knows the cause (a float32 tensor in `call()`, a shape that does not fit), that rule
speaks instead.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Spectrum(tf.keras.layers.Layer):
    def call(self, x):
        return tf.abs(tf.signal.rfft(x))  # an FFT has no float16 kernel


model = tf.keras.Sequential([Spectrum(), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(np.random.rand(64, 8), np.random.rand(64, 1))
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Spectrum(tf.keras.layers.Layer):
    def call(self, x):
        return tf.abs(tf.signal.rfft(x))


model = tf.keras.Sequential([Spectrum(dtype="float32"), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(np.random.rand(64, 8), np.random.rand(64, 1))
```

## Versions

All.

## Where users met it

tensorflow/tensorflow#33077, tensorflow/tensorflow#41614, huggingface/transformers#3320 and many more.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.examination.error_words import essence_of_message, headline_from_failure, place_of_failure

SEVERITY = Severity.ERROR
FAILS_IN = ("training",)


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if failure.during != "training" or failure.kind not in ("raised", "exited"):
        return
    place = place_of_failure(failure)
    yield Finding(
        f"The training step stops{f' in {place}' if place else ''}: {headline_from_failure(failure)}",
        _remedy(failure),
        failure.location,
        layer=failure.layer,
        stage="training",
        evidence={"exception": failure.exception, "error": failure.message},
    )


def _remedy(failure: FailureFacts) -> str:
    message = essence_of_message(failure.message).lower()
    halves = ("float16", "half", "bfloat16")
    if any(half in message for half in halves) and ("float32" in message or "float tensor" in message):
        return 'Two dtypes meet. Cast one to the other\'s: tf.cast(value, x.dtype), or give the layer dtype="float32".'
    if any(half in message for half in halves) and failure.layer:
        return f'Give the layer `{failure.layer}` dtype="float32", so that it computes in float32.'
    return "Mend this line; the script stops here without mpdoctor, too."
