"""`call()` squares and sums weights in 16 bits.

## Why it matters
Inside `call()` a layer reads its float32 weights in float16. A weight of 300×300 ones has a sum of squares of
90000, which is infinite in float16, and so are the loss and every gradient; below that, small weights squared
are 0 (Keras 3.15, tf_keras 2.21). Outside of `call()` the same expression reads float32, and so do a layer's
regularizers.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Scale(keras.layers.Layer):
    def build(self, shape):
        self.w = self.add_weight(name="w", shape=(shape[-1], 512))

    def call(self, inputs):
        self.add_loss(1e-4 * tf.cast(tf.nn.l2_loss(self.w), tf.float32))
        return tf.matmul(inputs, self.w)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Scale(keras.layers.Layer):
    def build(self, shape):
        decay = keras.regularizers.L2(5e-5)
        self.w = self.add_weight(name="w", shape=(shape[-1], 512), regularizer=decay)

    def call(self, inputs):
        return tf.matmul(inputs, self.w)
```

## Versions
All, under mixed_float16.

## Where users met it
keisen/tf-keras-vis#60, and the cast in google/automl's training library.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.location import holds
from mpdoctor.finding import Edit, Finding, Severity
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, known, options, walk
from mpdoctor.semantics.source.edits.casts import cast, cast_argument
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.uses import meets_others
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.layers.weight_values import is_made_of_weights
from mpdoctor.semantics.source.numbers.epsilon_guards import divisors
from mpdoctor.semantics.source.texts.written import left_operand_at

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
ONLY_IN_HALF = True
SUMS = ("reduce_sum", "sum")
NORMS = ("l2_loss", "norm", "reduce_euclidean_norm")
SQUARES = ("square", "pow", "power", "multiply")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    precision = precision_of(facts)
    for call, weights in _decayed(facts):
        if weights is None or not is_made_of_weights(weights) or asks_for_dtype(call.context):
            continue
        if any(part is call for value in divisors(facts) for part in walk(value)):
            continue  # a norm that the weights are divided by
        if precision.runs_in_call(call.context) and precision.dtype(weights, call.context) == "float16":
            yield Finding(
                "In `call()` these weights are float16, and so is the sum of their squares: it overflows beyond "
                "65504, and the squares of small weights become 0.",
                "Give the layer a `kernel_regularizer` (or `add_weight(…, regularizer=…)`), which reads float32, or "
                "cast the weights to float32 before squaring them.",
                call.location,
                fix=None if meets_others(facts, call) else unsafe_fix("Cast them to float32 first", _cast(facts, call)),
            )


def _cast(facts: SourceFacts, call: Call) -> list[Edit] | None:
    """The edits that cast the weights themselves: a square that is cast afterwards has already lost the small ones."""
    if function_named(call) not in SUMS:
        return cast_argument(facts, call.location)
    square = call.argument(0, "input_tensor") or call.keyword("x")
    if not isinstance(square, (Call, Operation)) or not holds(call.location, square.location):
        return None
    if isinstance(square, Call):
        return cast_argument(facts, square.location) if function_named(square) != "multiply" else None
    weights = left_operand_at(facts, square.location, "**")
    return cast(facts, weights) if weights is not None else None


def _decayed(facts: SourceFacts) -> Iterator[tuple[Call, Value | None]]:
    """Each call that squares and sums, with the value that it does so with: l2_loss, a norm, a sum of squares, a
    regularizer. A sum along an axis is no weight decay: the distances to the entries of a codebook are such sums."""
    for call, name in functions_called(facts):
        if name in (*NORMS, *SUMS) and not _is_along_an_axis(call, name):
            yield call, _summed(call, name)
    for call in facts.object_calls:
        made = call.callee.callee if isinstance(call.callee, Call) else None
        if isinstance(made, Api) and made.name.startswith("keras.regularizers.") and not _is_along_an_axis(call, ""):
            yield call, call.argument(0, "x")


def _is_along_an_axis(call: Call, name: str) -> bool:
    return type(known(call.argument(2 if name == "norm" else 1, "axis"))) is int


def _summed(call: Call, name: str) -> Value | None:
    if name in NORMS:
        return call.argument(0, "t") or call.keyword("tensor") or call.keyword("x")
    summed = call.argument(0, "input_tensor")
    return summed if any(_is_square(option) for option in options(summed)) else None


def _is_square(value: Value) -> bool:
    if isinstance(value, Operation):
        is_power = value.operator == "**" and known(value.operands[1]) == 2
        return is_power or (value.operator == "*" and value.operands[0] is value.operands[-1])
    return function_named(value) in SQUARES
