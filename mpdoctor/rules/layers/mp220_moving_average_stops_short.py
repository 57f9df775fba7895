"""A moving average is kept or computed in 16 bits, and stops short of what it averages.

## Why it matters
Each update adds a small share of a new value. Once the average is near it, the share is less than half of the average's
last bit, is rounded away, and the average stands still. With a decay of 0.999 an average of ones stops at 0.75 in
float16 and at 0.5 in bfloat16, with 0.99 at 0.98 and 0.84. A float32 weight stops there too, because `call()` reads
weights in 16 bits: 0.75, and 0.76 where the read value is cast to float32. Made with `autocast=False` it came to 1.00
(Keras 3.15, tf_keras 2.21, TensorFlow 2.15 and 2.10; 10,000 updates).

## Flagged
```python
import keras

keras.config.set_dtype_policy("mixed_float16")


class Centered(keras.layers.Layer):
    def build(self, input_shape):
        self.mean = self.add_weight(shape=(input_shape[-1],), initializer="zeros", trainable=False)

    def call(self, inputs, training=False):
        if training:
            self.mean.assign(0.999 * self.mean + 0.001 * keras.ops.mean(inputs, axis=0))
        return inputs - self.mean
```

## Fixed
```python
import keras

keras.config.set_dtype_policy("mixed_float16")


class Centered(keras.layers.Layer):
    def build(self, input_shape):
        self.mean = self.add_weight(
            shape=(input_shape[-1],), initializer="zeros", trainable=False, dtype="float32", autocast=False
        )

    def call(self, inputs, training=False):
        if training:
            self.mean.assign(0.999 * self.mean + 0.001 * keras.ops.mean(keras.ops.cast(inputs, "float32"), axis=0))
        return inputs - keras.ops.cast(self.mean, inputs.dtype)
```

## Versions
All. In `tf.keras` of TensorFlow 2.15 and before, a 16-bit value cannot be assigned to a float32 weight at all (MP205).
Averages that come to nine tenths of what they average are left alone: 0.99 in float16, 0.9 in bfloat16.

## Where users met it
No report is known: it was seen in a training whose averaged weights, kept in float16, stood still. Keras' own
BatchNormalization computes its averages in float32.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import AlsoSeen, Finding, Severity
from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.layer_variables import is_stored_as_computed
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.numbers.moving_averages import MovingAverage, end_for_ones, moving_averages

SEVERITY = Severity.WARNING
FAR_FROM_ONE = 0.9


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for average in moving_averages(facts):
        dtype = precision.half(average.variable, average.update.context)
        if dtype is None or average.variable.open or asks_for_dtype(average.update.context) or _raises(facts, average):
            continue
        end = end_for_ones(average.decay, dtype)
        if end < FAR_FROM_ONE:
            yield Finding(
                f"This moving average is computed from its {dtype} value: at a decay of {average.decay:g} the share "
                "that an update adds is soon less than half of the last bit, and an average of ones stops at about "
                f"{end:.2g}.",
                _help(facts, average.variable),
                average.update.location,
                also_seen=_made_at(average),
            )


def _made_at(average: MovingAverage) -> tuple[AlsoSeen, ...]:
    """The line that makes the variable, if it is another one."""
    made, update = average.variable.location, average.update.location
    if (made.path, made.line) == (update.path, update.line):
        return ()
    return (AlsoSeen("MP220", "source", "The variable is made here.", made.path, made.line),)


def _raises(facts: SourceFacts, average: MovingAverage) -> bool:
    """Whether the assignment is refused, as MP205 tells."""
    weight, value = average.variable, average.update.argument(0)
    if facts.keras.package != "tf.keras" or not is_weight(weight) or is_stored_as_computed(facts, weight):
        return False
    return facts.dtype_of(weight) == "autocast" and precision_of(facts).half(value, average.update.context) is not None


def _help(facts: SourceFacts, variable: Call) -> str:
    if not is_weight(variable):
        return "Make the variable in float32, and cast what it averages to float32."
    word = "autocast" if facts.keras.is_keras3 else "experimental_autocast"
    return f'Make the weight with `add_weight(…, dtype="float32", {word}=False)`, and cast what it averages to float32.'
