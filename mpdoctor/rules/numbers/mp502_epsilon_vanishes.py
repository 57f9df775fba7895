"""A small number that should keep a division, a logarithm or a root away from 0 is itself 0 in float16.

## Why it matters
float16 rounds what is smaller than 2.98e-08 to 0: `x / (norm + 1e-8)` and `log(p + 1e-12)` guard against
nothing, and a row of zeros gives NaN, in the forward pass and in the gradients (TensorFlow 2.21, tf_keras,
2.15). From there to 1.53e-05 the number survives, but its reciprocal is infinite: the result is finite, the
gradient of that row is inf or NaN, and the step is skipped. 1e-4 worked in every form that was tried.
`1 - 1e-7` is 1.0, in bfloat16 too, so `log(1 - p)` behind such a clip is -inf. Keras' own normalization
layers compute in float32 inside, and are fine with 1e-12.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Unit(keras.layers.Layer):
    def call(self, inputs):
        norm = tf.reduce_max(tf.abs(inputs), axis=-1, keepdims=True)
        return inputs / (norm + 1e-8)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Unit(keras.layers.Layer):
    def call(self, inputs):
        norm = tf.reduce_max(tf.abs(inputs), axis=-1, keepdims=True)
        return inputs / (norm + 1e-4)
```

## Versions
All, under mixed_float16. Losses that Keras 3 is given in compile() see float32, and are fine.

## Where users met it
keras-team/keras#9582, keras-team/keras#11832, keras-team/keras#22586, keras-team/keras-hub#730.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.source import SourceFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.layers.calls import asks_for_dtype
from mpdoctor.rules.numbers.constants import BELOW_ONE, NO_RECIPROCAL, VANISHES, numbers_from_value, written
from mpdoctor.rules.numbers.differentiated import has_gradient
from mpdoctor.rules.numbers.guards import (
    BOUND,
    DIVISOR,
    LOG,
    RECIPROCAL_ROOT,
    ROOT,
    ROOT_DIVISOR,
    function_named,
    guards,
    upper_bounds,
)
from mpdoctor.rules.numbers.precision import precision_of

SEVERITY = Severity.ERROR
WITHOUT_GUARD = {
    DIVISOR: "a divisor of 0 gives inf or NaN",
    ROOT_DIVISOR: "a divisor of 0 gives inf or NaN",
    LOG: "the logarithm of 0 is -inf",
    ROOT: "the gradient of the root of 0 is infinite",
    RECIPROCAL_ROOT: "the reciprocal of the root of 0 is infinite",
}
HELP = "Write 1e-4, or compute this part in float32: `tf.cast(x, tf.float32)`."
NORMALIZING = 1e-12  # the default of tf.math.l2_normalize


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    precision = precision_of(facts)
    for use, how, number, guarded, user in guards(facts):
        largest, context = max(numbers_from_value(number)), user.context
        if not 0 < largest < NO_RECIPROCAL or asks_for_dtype(context):
            continue
        if precision.dtype(guarded, context) != "float16":
            continue
        if largest <= VANISHES:
            message = f"{written(largest)} is 0 in float16 and guards against nothing: {WITHOUT_GUARD[use]}."
            yield Finding(message, HELP, guarded.location)
        elif use != ROOT and (use, how) != (LOG, BOUND) and has_gradient(user):
            yield Finding(
                f"The reciprocal of {written(largest)} is infinite in float16: near 0 the gradient of this is inf or "
                "NaN.",
                HELP,
                guarded.location,
                severity=Severity.WARNING,
            )
    for number, clipped, context in upper_bounds(facts):
        dtype = precision.half(clipped, context)
        distance = 1 - max(numbers_from_value(number))
        if dtype is not None and 0 < distance <= BELOW_ONE[dtype] and not asks_for_dtype(context):
            yield Finding(
                f"1 - {written(distance)} is 1.0 in {dtype}, so `1 - p` can be 0 here: its logarithm is -inf.",
                "Compute this in float32 (`tf.cast(p, tf.float32)`), or take the loss that works on logits.",
                clipped.location,
            )
    yield from _normalizing(facts)


def _normalizing(facts: SourceFacts) -> Iterator[Finding]:
    """tf.math.l2_normalize, whose own epsilon is 1e-12."""
    precision = precision_of(facts)
    for call in facts.library_calls:
        if function_named(call) != "l2_normalize" or asks_for_dtype(call.context) or call.open:
            continue
        given = call.argument(2, "epsilon")
        largest = NORMALIZING if given is None else max(numbers_from_value(given), default=1.0)
        if largest <= VANISHES and precision.dtype(call.argument(0, "x"), call.context) == "float16":
            yield Finding(
                f"`l2_normalize` guards with {written(largest)}, which is 0 in float16: a row of zeros, or of values "
                "below 2e-4, becomes NaN.",
                "Give it `epsilon=1e-6`, or normalize in float32.",
                call.location,
                severity=Severity.WARNING if given is None else None,
            )
