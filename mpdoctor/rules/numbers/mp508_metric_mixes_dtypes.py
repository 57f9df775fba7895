"""A metric combines float32 with the model's 16-bit output, or accepts only float32.

## Why it matters
Keras 3 casts for the loss, but passes a metric the labels unchanged and the predictions in 16 bits:
`tf.abs(y_true - y_pred)` raises `Input 'y' of 'Sub' Op has type float16 that does not match type float32 of
argument 'x'`, in metric functions and in `update_state` alike (Keras 3.15). Keras 2 casts for metric functions,
but not for subclasses of Metric: adding a 16-bit value to a float32 state,
`self.total.assign_add(tf.reduce_sum(…))`, raises there (tf_keras 2.21, TensorFlow 2.15).

Keras 3's own TopKCategoricalAccuracy and SparseTopKCategoricalAccuracy raise on any 16-bit output: `Input
'predictions' of 'InTopKV2' Op has type float16 that does not match expected type of float32` (Keras 3.15),
whatever the metric's `dtype`. Keras 2 casts for them. But Keras 2's F1Score, FBetaScore and R2Score raise on any 16-bit
output, whatever their `dtype` (TensorFlow 2.15, tf_keras 2.21), and those of Keras 3 do not.

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
        return self.head(inputs)[:, 0]


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
        return self.head(inputs)[:, 0]


model = Regression()
model.compile(optimizer="adam", loss="mse", metrics=[largest_error])
```

## Versions
Keras 3: functions and classes, and Keras' own top-k metrics; Keras 2: classes, and Keras' own scores.

## Where users met it
tensorflow/models#11215, tensorflow/tensorflow#45568, keras-team/keras#20014.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.location import Location, holds
from mpdoctor.facts.written_numbers import capitalized
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.metrics_of_float32 import REFUSES, SCORES, TOP_K, Refusing
from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_instance_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Parameter
from mpdoctor.program.values import Value, is_api, known
from mpdoctor.semantics.live.errors.dtype_errors import half_given_for_float32, mismatch_of_precisions
from mpdoctor.semantics.live.errors.error_texts import evidence_of
from mpdoctor.semantics.live.errors.failing_parts import place_of_part
from mpdoctor.semantics.source.edits.casts import cast, cast_argument, cast_to_float32_instead
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.layers.layer_variables import ASSIGNING
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.operands.combined_values import casts_to_half
from mpdoctor.semantics.source.operands.dtype_mismatches import DtypeMismatch, dtype_mismatches
from mpdoctor.semantics.source.programs.losses_and_metrics import compiled, outputs_named
from mpdoctor.semantics.source.programs.running_functions import method_around
from mpdoctor.semantics.source.texts.written import name_at
from mpdoctor.semantics.wording import place_of, quoted, text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
CONFIRMED_LIVE = True
ONLY_IN_HALF = True
HELP = "Cast the predictions first: `y_pred = tf.cast(y_pred, tf.float32)`."
OF_OWN_TENSOR = "Cast the 16-bit one first: `tf.cast(…, tf.float32)`."
IN_RESULT = "Cast one of the two to the other's dtype here: a metric's own states are float32."
LAST_LAYER = 'Give the model\'s last layer `dtype="float32"`: the metric then gets float32 predictions.'


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for mismatch in dtype_mismatches(facts):
        if mismatch.in_metric:
            yield Finding(
                _mixing(facts, mismatch),
                _help(facts, mismatch),
                mismatch.event.location,
                fix=_fix(facts, mismatch.event, mismatch.half),
            )
    yield from _refused_by_keras(facts)
    if not facts.keras.is_keras3:  # Keras 3 casts the assigned value
        yield from _assigned(facts)


def _mixing(facts: SourceFacts, mismatch: DtypeMismatch) -> str:
    if _made_in_float32(facts, mismatch):
        made, here = mismatch.wide.location, mismatch.event.location
        is_here = made.path == here.path and here.line <= made.line <= max(here.line, here.end_line)
        unnamed = "A tensor that is made here" if is_here else f"The tensor of {place_of(facts, made, here)}"
        side = quoted(facts, made, here) or unnamed
        return f"{side} is float32, and is combined with a {mismatch.half_dtype} tensor here: this line raises."
    if casts_to_half(facts, mismatch.half):
        wide = quoted(facts, mismatch.wide.location, mismatch.event.location) or "A tensor"
        return f"{wide} is float32, and is combined with a value cast to {mismatch.half_dtype}: this line raises."
    labels = "the labels, which are float32" if facts.keras.is_keras3 else "a float32 tensor"
    return (
        f"This metric gets {mismatch.half_dtype} predictions, and here they are combined with {labels}: "
        "this line raises."
    )


def _help(facts: SourceFacts, mismatch: DtypeMismatch) -> str:
    if casts_to_half(facts, mismatch.half):
        return f"Cast to float32 instead of {mismatch.half_dtype}."
    return OF_OWN_TENSOR if _made_in_float32(facts, mismatch) else HELP


def _made_in_float32(facts: SourceFacts, mismatch: DtypeMismatch) -> bool:
    """Whether the program itself makes the float32 operand, so that it is not the labels."""
    return facts.dtype_of(mismatch.wide) == "float32"


def _refused_by_keras(facts: SourceFacts) -> Iterator[Finding]:
    """Keras' own metrics that are given 16-bit predictions, by compile() or by hand, and refuse them."""
    precision = precision_of(facts)
    refusing = TOP_K if facts.keras.is_keras3 else SCORES
    dtypes = dict[Location, str]()
    for position, keyword in ((3, "metrics"), (4, "weighted_metrics")):
        given = [(*pair, precision.of_model(pair[0].receiver)) for pair in compiled(facts, position, keyword)]
        for call, metric, output in outputs_named(facts, position, keyword):
            given.append((call, metric, precision.of_output(call.receiver, output)))
        for call, metric, dtype in given:
            if dtype is not None and dtype in HALF and _is_one_of(metric, refusing) and not call.context.guarded:
                dtypes[metric.location] = dtype
    yield from (_refusal(refusing, dtype, "", location) for location, dtype in dtypes.items())
    for call in facts.calls:
        predictions = call.argument(1, "y_pred")
        if predictions is None or call.context.guarded or not _is_called_by_hand(call, refusing):
            continue
        dtype = precision.half(predictions, call.context)
        if dtype is not None:
            yield _refusal(refusing, dtype, text_at(facts, predictions.location), call.location)


def _is_called_by_hand(call: Call, refusing: Refusing) -> bool:
    """Whether it is a call of such a function, of such a metric, or of its `update_state`."""
    metric = call.callee if isinstance(call.callee, Call) else call.receiver
    is_updated = metric is call.callee or call.method == "update_state"
    is_metric = metric is not None and is_updated and _is_one_of(metric, refusing)
    return is_api(call.callee, *refusing.functions) or is_metric


def _is_one_of(metric: Value, refusing: Refusing) -> bool:
    """Whether it is one of these metrics (an object, a name or a function), or of a subclass that keeps their
    `update_state`."""
    own = class_of(metric)
    if own is not None and own.find_method("update_state") is not None:
        return False
    is_named = known(metric) in refusing.names or is_api(metric, *refusing.functions)
    return is_named or is_instance_of(metric, *refusing.classes)


def _refusal(refusing: Refusing, dtype: str, predictions: str, location: Location) -> Finding:
    return Finding(
        f"{refusing.called} only float32 predictions, and gets {dtype}: this raises.",
        f"Cast them first: `tf.cast({predictions}, tf.float32)`."
        if predictions
        else 'Give the model\'s last layer `dtype="float32"`.',
        location,
    )


def _assigned(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for call in facts.method_calls(*ASSIGNING):
        method = method_around(facts, call.context)
        owner = None if method is None else method.owner
        if owner is None or owner.kind != "metric" or not _is_float32_state(facts, call.receiver):
            continue
        if _is_kept_in_half(facts, owner, call.receiver):
            continue  # MP204
        name = precision.half(call.argument(0, "value"), call.context)
        if name is not None:
            yield Finding(
                f"A {name} value is assigned to a float32 state of this metric: this line raises.",
                HELP,
                call.location,
                fix=safe_fix("Cast the value to float32", cast_argument(facts, call.location)),
            )


def _is_kept_in_half(facts: SourceFacts, owner: ClassFacts, state: Value | None) -> bool:
    """Whether the metric itself is given a 16-bit dtype, which its states have where they are told none."""
    is_told = isinstance(state, Call) and state.keyword("dtype") is not None
    given = [owner.base_argument("dtype"), *(made.keyword("dtype") for made in facts.makings_of(owner))]
    return not is_told and any(dtype_named(dtype, facts.keras) in HALF for dtype in given)


def _is_float32_state(facts: SourceFacts, state: Value | None) -> bool:
    """Whether a metric's state is made without a dtype, or in float32 by name."""
    if not isinstance(state, Call) or not is_weight(state):
        return False
    given = state.keyword("dtype")
    return given is None or dtype_named(given, facts.keras) == "float32"


def _fix(facts: SourceFacts, event: Call | Operation, half: Value) -> Fix | None:
    """The edit that casts the predictions where they are combined with the labels, or names float32 in the cast that
    made 16 bits of them."""
    casts = casts_to_half(facts, half)
    if any(call.context.function is not event.context.function for call in casts):
        return None  # in a function that others may call
    if casts:
        return safe_fix("Cast to float32", cast_to_float32_instead(facts, (call.location for call in casts)))
    name = half.name if isinstance(half, Parameter) else ""
    place = name_at(facts, event.location, name) if name else None
    if place is None and holds(event.location, half.location):
        place = half.location
    return safe_fix("Cast the predictions to float32", cast(facts, place)) if place is not None else None


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if failure.inside != "metric" and (failure.part is None or failure.part.kind != "metric"):
        return
    ranked = next((match[1] for words in REFUSES if (match := re.search(words, failure.said_by_library))), None)
    if ranked is not None and failure.computes_in_half:
        yield Finding(
            "A top-k accuracy accepts only float32 predictions, but the model's are 16-bit.",
            'Give the model\'s last layer `dtype="float32"`.',
            failure.location,
            evidence=evidence_of(failure),
        )
        return
    mismatch, assigned = mismatch_of_precisions(failure), half_given_for_float32(failure)
    if mismatch is not None:
        message = f"{_metric(failure, 'In a metric')} {mismatch.words}."
    elif assigned is not None:
        message = f"{_metric(failure, 'A metric')} assigns a {assigned} value to its float32 state."
    else:
        return
    yield Finding(message, _remedy(failure), place_of_part(failure), evidence=evidence_of(failure))


def _metric(failure: FailureFacts, unknown: str) -> str:
    part = failure.part
    if part is None:
        return unknown
    where = f"`{part.called}`" if part.own else f"the metric `{part.called}`, which is not your code,"
    return f"In {where}" if unknown.startswith("In") else capitalized(where)


def _remedy(failure: FailureFacts) -> str:
    """The help text; `result` combines the metric's own numbers rather than predictions."""
    part = failure.part
    if part is not None and part.method == "result":
        return IN_RESULT if part.own else "Leave the metric out, or rewrite it: its own numbers have different dtypes."
    return HELP if part is None or part.own else LAST_LAYER
