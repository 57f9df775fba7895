"""The shapes of the data do not fit the model, or a layer silently reshapes its batch.

## Why it matters

The first step raises, with a message about shapes from deep inside TensorFlow. This has nothing to do with
precision; it is reported because it keeps you from training at all. If a layer returns another number of
samples than it gets, that layer is named, although its own reshape ran and only the loss raised.

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

Too many reports to list: it is the most frequent error of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.layer import BatchFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.errors.error_texts import place_of_failure
from mpdoctor.semantics.live.errors.shape_errors import DATA, ShapeError, shape_error_from_message

SEVERITY = Severity.ERROR
FAILS_IN = ("model", "training")
NEVER_WHAT_IF = True


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    error = shape_error_from_message(failure.said_by_library)
    if error is None:
        return
    evidence = {"expected": error.expected, "actual": error.actual, "exception": failure.exception}
    evidence["error"] = failure.message
    changed = _changed_batch(failure, error) if failure.layer is None else None
    if changed is not None:
        yield _finding_of_batch(changed, error, evidence)
        return
    place = place_of_failure(failure)
    yield Finding(
        f"Shapes do not fit{f' in {place}' if place else ''}: {error.words}.",
        _help(failure, error),
        failure.location,
        layer=failure.layer,
        evidence=evidence,
    )


def _help(failure: FailureFacts, error: ShapeError) -> str:
    """The remedy. While a model is made, no data have come yet."""
    if error.remedy != DATA or failure.in_training:
        return error.remedy
    if failure.layer_made_by:
        return "The library makes this layer: check the arguments that you give it here."
    return "Check what the layer is called on: the model's Input or data, or the output of the layer before it."


def _changed_batch(failure: FailureFacts, error: ShapeError) -> BatchFacts | None:
    """The layer whose output has the number of samples of one of the two shapes, and whose input that of the other."""
    sizes = {_first(error.expected), _first(error.actual)}
    if None in sizes or len(sizes) != 2:
        return None
    return next((batch for batch in failure.batches if {batch.given, batch.returned} == sizes), None)


def _first(shape: str) -> int | None:
    """The first size of a shape: 32 for "(32, 1)" and "[32,1]"."""
    match = re.match(r"[(\[]\s*(\d+)\s*[,)\]]", shape)
    return int(match[1]) if match else None


def _finding_of_batch(batch: BatchFacts, error: ShapeError, evidence: dict[str, str]) -> Finding:
    return Finding(
        f"Layer `{batch.layer}` ({batch.class_name}) gets {batch.given} samples and returns {batch.returned}, so the "
        f"loss has no label for each of them: {error.words}. A `-1` as the first size of a reshape takes any number of "
        "samples.",
        "Write the batch size, `tf.reshape(x, (tf.shape(x)[0], …))`, with other sizes that multiply to the size of one "
        "sample. The layer `Reshape` never changes the number of samples.",
        batch.location,
        layer=batch.layer,
        evidence={**evidence, "samples_given": batch.given, "samples_returned": batch.returned},
    )
