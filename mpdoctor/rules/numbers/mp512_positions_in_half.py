"""Positions or timesteps are counted in 16 bits, beyond the range where 16 bits hold every integer.

## Why it matters
float16 holds every integer only up to 2048, bfloat16 only up to 256: of the positions 0 to 4095 only 3073
different ones are left in float16, and of 0 to 999 only 507 in bfloat16 (TensorFlow 2.21). Neighbouring
positions get the same encoding. Compute sines, cosines and differences in float32, and cast the result, which
lies between -1 and 1.

A check that trains the program also looks at the sines and cosines in its layers, where the numbers come from the
data: days since 1970, timesteps, a running sum.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Positions(keras.layers.Layer):
    def call(self, inputs):
        positions = tf.cast(tf.range(4096), inputs.dtype)
        return inputs + tf.sin(positions / 10000.0)[:, tf.newaxis]
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Positions(keras.layers.Layer):
    def call(self, inputs):
        positions = tf.cast(tf.range(4096), tf.float32)
        return inputs + tf.cast(tf.sin(positions / 10000.0)[:, tf.newaxis], inputs.dtype)
```

## Versions
All.

## Where users met it
keras-team/keras-cv#2102, divamgupta/stable-diffusion-tensorflow#43.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import EXACT
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value
from mpdoctor.semantics.live.hidden_overflows import finding_of_lost_wave
from mpdoctor.semantics.source.function_names import functions_called
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.numbers.constants import CASTS
from mpdoctor.semantics.source.numbers.precision import precision_of
from mpdoctor.semantics.source.programs.data.last_integers import RANGES, LastIntegers

SEVERITY = Severity.WARNING
CONFIRMED_LIVE = True
EXPLAINS = {"MP908": "model"}
CONVERTING = ("tensorflow.constant", "tensorflow.convert_to_tensor", "keras.ops.convert_to_tensor", "keras.ops.array")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    precision = precision_of(facts)
    integers = LastIntegers(facts)
    for call, counted in _counted(facts):
        last = integers.last(counted)
        dtype = precision.half(call, call.context) if last else None
        if counted is call and dtype == "float16":
            continue  # it has no kernel for that: MP211
        if dtype is not None and last > EXACT[dtype] and not asks_for_dtype(call.context):
            yield Finding(
                f"{dtype} holds every integer only up to {EXACT[dtype]}, and these go up to {last:g}: neighbouring "
                "numbers become equal.",
                "Compute with them in float32, `tf.cast(…, tf.float32)`, and cast the result (a sine, a fraction) to "
                "16 bits.",
                call.location,
            )


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    """Waves that a layer computes of angles without a phase: of days, of timesteps, of a running sum."""
    hidden = training.hidden_overflow
    if hidden is not None and hidden.is_wave:
        yield finding_of_lost_wave(training)


def _counted(facts: SourceFacts) -> Iterator[tuple[Call, Value | None]]:
    """Each call with the values that are integers there: a range itself, or the value that is cast."""
    for call, name in functions_called(facts):
        if name in RANGES and not call.context.guarded:
            yield call, call
    for call in facts.calls_of(*CASTS, *CONVERTING):
        yield call, call.argument(0, "x")
