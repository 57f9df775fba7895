"""In `call()`, a tensor that is float32 by its own making meets the layer's input, which mixed precision made
16-bit.

## Why it matters
TensorFlow does not mix dtypes. `inputs + tf.constant([1.0])` works under float32 and raises under mixed
precision, in Keras 3 and Keras 2 alike: `cannot compute AddV2 as input #1(zero-based) was expected to be a
half tensor but is a float tensor`. numpy arrays and Python numbers take the dtype of what they meet, and
are fine.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Noise(keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.random.normal(tf.shape(inputs))
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Noise(keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.random.normal(tf.shape(inputs), dtype=inputs.dtype)
```

## Versions
All. In Keras 3 a weight on the left (`self.w + tf.ones(4)`) and `keras.ops` functions promote to float32
instead of raising; that is another matter and not said here.

## Where users met it
tensorflow/tensorflow#33077, tensorflow/tensorflow#41614, tensorflow/tensorflow#38850,
huggingface/transformers#3320, huggingface/transformers#9571, keras-team/keras-cv#2102, google/automl#566.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.dtypes import AUTOCAST, is_array
from mpdoctor.facts.names import public_name
from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.values import (
    Api,
    Attribute,
    Call,
    Collection,
    Context,
    Known,
    Operation,
    Value,
    is_call_of,
    options,
)
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.layers.calls import asks_for_dtype, computes_in_half
from mpdoctor.rules.wording import text_at

SEVERITY = Severity.ERROR
OPERATORS = frozenset(("+", "-", "*", "/", "//", "**", "@", "%"))
MEETING = frozenset(
    "tensorflow." + name
    for name in [
        "add",
        "subtract",
        "multiply",
        "divide",
        "truediv",
        "matmul",
        "maximum",
        "minimum",
        "pow",
        "floordiv",
        "tensordot",
        "einsum",
    ]
)
JOINING = {"tensorflow.concat": 0, "tensorflow.stack": 0, "tensorflow.add_n": 0}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for event, meeting in _meetings(facts):
        if asks_for_dtype(event.context) or not _may_raise(facts, meeting):
            continue
        wide = [one for one in meeting if facts.dtype_of(one) == "float32" and not is_array(one)]
        if wide and any(_is_half(facts, one, event.context) for one in meeting):
            text = text_at(facts, wide[0].location)
            yield Finding(
                f"{f'`{text}`' if text else 'A tensor made here'} is float32 and meets the layer's "
                "16-bit input: under a "
                "mixed policy this line raises.",
                _help(wide[0], text),
                event.location,
            )


def _meetings(facts: SourceFacts) -> Iterator[tuple[Operation | Call, tuple[Value, ...]]]:
    for operation in facts.operations:
        if operation.operator in OPERATORS and len(operation.operands) == 2:
            yield operation, operation.operands
    for call in facts.calls:
        if not isinstance(call.callee, Api):
            continue
        name = public_name(call.callee.name)
        if name in MEETING:
            yield call, tuple(one for one in call.args if not isinstance(one, Known))
        elif name in JOINING and call.args and isinstance(call.args[0], Collection):
            yield call, call.args[0].items


def _is_half(facts: SourceFacts, value: Value, context: Context) -> bool:
    dtype = facts.dtype_of(value)
    return dtype in ("float16", "bfloat16") or (dtype == AUTOCAST and computes_in_half(facts, value, context))


def _may_raise(facts: SourceFacts, meeting: tuple[Value, ...]) -> bool:
    """In Keras 3 a weight that comes first is a Keras variable, which promotes instead of raising."""
    if not facts.keras.is_keras3 or not meeting:
        return True
    return not any(_is_weight(one) for one in options(meeting[0]))


def _is_weight(value: Value) -> bool:
    return isinstance(value, Call) and isinstance(value.callee, Attribute) and value.callee.name == "add_weight"


def _help(value: Value, text: str) -> str:
    if is_call_of(value, "tensorflow.Variable"):
        return "Make it with `self.add_weight(…)`: Keras casts such a weight to the input's dtype, and trains it."
    if isinstance(value, Call) and value.method == "cast" and text:
        return "Cast to the input's dtype instead: `tf.cast(…, inputs.dtype)`, or `self.compute_dtype`."
    return "Make it in the input's dtype: `dtype=inputs.dtype`, or `tf.cast(…, inputs.dtype)`."
