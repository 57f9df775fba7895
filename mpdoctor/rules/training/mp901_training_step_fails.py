"""The training step raised an error.

## Why it matters

Nothing trains until this is fixed. The report names your line and the layer that were running, and explains the
error. An error outside the step is named as what it is: the callback and its method, the metric, the loss, the
generator or function of the input pipeline, or the `get_config` that saving calls. Where another rule knows the
cause (a float32 tensor in `call()`, a shape that does not fit), that rule reports it instead.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


def squared_error(labels, prediction):
    return tf.reduce_mean(tf.square(tf.cast(labels, tf.int32) - prediction))  # int32 meets float32


model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", squared_error)
model.fit(np.random.rand(64, 8), np.random.rand(64, 1))
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


def squared_error(labels, prediction):
    return tf.reduce_mean(tf.square(tf.cast(labels, tf.float32) - prediction))


model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", squared_error)
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
from mpdoctor.semantics.live.errors.dtype_errors import mismatch_of_precisions
from mpdoctor.semantics.live.errors.error_remedies import remedy_from_failure
from mpdoctor.semantics.live.errors.error_texts import evidence_of, headline_from_failure, place_of_failure
from mpdoctor.semantics.live.errors.failing_parts import place_of_part, subject_from_failure

SEVERITY = Severity.ERROR
FAILS_IN = ("training",)
SAYS_THAT_IT_RAISED = True
STEPS = {
    "ending": "The end of fit(), after its last step,",
    "between": "The program, between two steps of its training,",
    "behind": "The program, behind its training loop,",
}


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if not failure.in_training or failure.kind not in ("raised", "exited"):
        return
    yield Finding(
        f"{_subject(failure)}: {headline_from_failure(failure)}",
        remedy_from_failure(failure) or _fix_the_line(failure),
        place_of_part(failure),
        layer=failure.layer,
        stage="training",
        evidence=_evidence(failure),
    )


def _fix_the_line(failure: FailureFacts) -> str:
    is_of_library = bool(failure.frames) and not failure.frames[-1].own and not failure.raised_by_program
    first = (
        "The library raises it: change what it is given on this line, or asked for"
        if is_of_library
        else "Fix this line"
    )
    return f"{first}; {failure.how_it_ran}."


def _evidence(failure: FailureFacts) -> dict[str, object]:
    """The evidence, with dtypes only where the error is about dtypes."""
    if mismatch_of_precisions(failure) is not None:
        return evidence_of(failure)
    return {"exception": failure.exception, "error": failure.message}


def _subject(failure: FailureFacts) -> str:
    place = place_of_failure(failure)
    step = STEPS.get(failure.during, "The training step")
    return subject_from_failure(failure) or f"{step} stops{f' in {place}' if place else ''}"
