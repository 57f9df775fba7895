"""A metric of the user's own mixes float32 with the model's 16-bit output.

## Why it matters
Keras 3 casts for the loss, but hands a metric the labels as they are and the predictions in 16 bits:
`tf.abs(y_true - y_pred)` raises `Input 'y' of 'Sub' Op has type float16 that does not match type float32 of
argument 'x'`, in metric functions and in `update_state` alike (Keras 3.15). Keras 2 casts for metric
functions, but not for subclasses of Metric: adding a 16-bit value to a float32 state,
`self.total.assign_add(tf.reduce_sum(…))`, raises there (tf_keras 2.21, 2.15).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


def largest_error(y_true, y_pred):
    return tf.reduce_max(tf.abs(y_true - y_pred))


class Regression(keras.Model):
    def __init__(self):
        super().__init__()
        self.head = keras.layers.Dense(1)

    def call(self, inputs):
        return self.head(inputs)


model = Regression()
model.compile(optimizer="adam", loss="mse", metrics=[largest_error])
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


def largest_error(y_true, y_pred):
    return tf.reduce_max(tf.abs(y_true - tf.cast(y_pred, tf.float32)))


class Regression(keras.Model):
    def __init__(self):
        super().__init__()
        self.head = keras.layers.Dense(1)

    def call(self, inputs):
        return self.head(inputs)


model = Regression()
model.compile(optimizer="adam", loss="mse", metrics=[largest_error])
```

## Versions
Keras 3: functions and classes; Keras 2: classes.

## Where users met it
tensorflow/models#11215, tensorflow/tensorflow#45568, keras-team/keras#20014.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Call, Operation, Parameter, Value
from mpdoctor.semantics.live.dtype_errors import half_given_for_float32, mismatch_of_precisions
from mpdoctor.semantics.live.error_texts import evidence_of
from mpdoctor.semantics.source.edits.expressions import holds, name_at, safe_fix
from mpdoctor.semantics.source.edits.names import cast, cast_argument
from mpdoctor.semantics.source.layers.layer_variables import ASSIGNING
from mpdoctor.semantics.source.layers.mixed_operands import is_weight
from mpdoctor.semantics.source.numbers.dtype_mismatches import dtype_mismatches
from mpdoctor.semantics.source.numbers.precision import precision_of

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
HELP = "Cast the predictions first: `y_pred = tf.cast(y_pred, tf.float32)`."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for mismatch in dtype_mismatches(facts):
        if mismatch.in_metric:
            labels = "the labels, which are float32" if facts.keras.is_keras3 else "a float32 tensor"
            yield Finding(
                f"This metric is given {mismatch.half_dtype} predictions, and here they are combined with {labels}: "
                "this line raises.",
                HELP,
                mismatch.event.location,
                fix=_fix(facts, mismatch.event, mismatch.half),
            )
    if not facts.keras.is_keras3:  # which casts what is assigned
        yield from _assigned(facts)


def _assigned(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for call in facts.method_calls(*ASSIGNING):
        owner = call.context.owner
        if owner is None or owner.kind != "metric" or call.receiver is None or not is_weight(call.receiver):
            continue
        name = precision.half(call.argument(0, "value"), call.context)
        if name is not None:
            yield Finding(
                f"A {name} value is assigned to a float32 state of this metric: this line raises.",
                HELP,
                call.location,
                fix=safe_fix("Cast it to float32", cast_argument(facts, call.location)),
            )


def _fix(facts: SourceFacts, event: Call | Operation, half: Value) -> Fix | None:
    """The predictions cast where they meet the labels."""
    name = half.name if isinstance(half, Parameter) else ""
    place = name_at(facts, event.location, name) if name else None
    if place is None and holds(event.location, half.location):
        place = half.location
    return safe_fix("Cast the predictions to float32", cast(facts, place)) if place is not None else None


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if failure.inside != "metric":
        return
    mismatch, assigned = mismatch_of_precisions(failure), half_given_for_float32(failure)
    if mismatch is not None:
        what = f"In a metric {mismatch.words}."
    elif assigned is not None:
        what = f"A metric assigns a {assigned} value to its float32 state."
    else:
        return
    yield Finding(what, HELP, failure.location, evidence=evidence_of(failure))
