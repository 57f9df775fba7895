"""A mask is multiplied by a constant that float16 cannot hold: `(1 - mask) * -1e9`.

## Why it matters
-1e9 is -inf in float16, and 0 times -inf is NaN, so the rows where nothing is masked become NaN too: 64 of
64 rows, in Keras 3.15, tf_keras 2.21 and TensorFlow 2.15. Every step is skipped, the loss scale falls, and
the model never learns. `tf.where(mask, scores, -1e9)` is right (a masked score becomes -inf, the others
stay), and so is -6e4 as a factor, or the whole computation in float32. bfloat16 holds -1e9, so nothing is
said about mixed_bfloat16.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Attention(keras.layers.Layer):
    def call(self, scores):
        mask = tf.cast(scores != 0, scores.dtype)
        return tf.nn.softmax(scores + (1.0 - mask) * -1e9)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Attention(keras.layers.Layer):
    def call(self, scores):
        return tf.nn.softmax(tf.where(scores != 0, scores, -6e4))
```

## Versions
All, under mixed_float16.

## Where users met it
keras-team/keras#17571, tensorflow/tensorflow#59657, openai/gpt-2#122, huggingface/transformers#6915,
huggingface/transformers#31989.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.dtypes import AUTOCAST
from mpdoctor.facts.names import public_name
from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.values import Api, Call, Context, Operation, Value, known, options
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.layers.calls import asks_for_dtype, computes_in_half
from mpdoctor.rules.wording import text_at

SEVERITY = Severity.ERROR
LARGEST_HALF = 65504.0
MULTIPLY = ("tensorflow.multiply", "keras.ops.multiply", "keras.ops.numpy.multiply")
CAST = ("tensorflow.cast", "keras.ops.cast", "keras.backend.cast")
MADE_CONSTANT = ("tensorflow.constant", "tensorflow.convert_to_tensor", "keras.ops.convert_to_tensor", *CAST)
WIDE_LIMITS = (
    "tensorflow.float32.min",
    "tensorflow.float32.max",
    "tensorflow.float64.min",
    "tensorflow.float64.max",
)
RESHAPING = ("expand_dims", "reshape", "identity", "squeeze")
MASKS = ("sequence_mask", "logical_not", "logical_and", "logical_or", "band_part")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for event, factors in _products(facts):
        constant = next((one for one in factors if _overflows(one)), None)
        mask = next((one for one in factors if one is not constant and _is_mask(facts, one)), None)
        if constant is None or mask is None or asks_for_dtype(event.context):
            continue
        if not _is_half(facts, mask, event.context):
            continue
        text = text_at(facts, constant.location) or "This constant"
        text = f"`{text}`" if text != "This constant" else text
        yield Finding(
            f"{text} is infinite in float16, and 0 times infinity is NaN: every row becomes NaN, masked or not.",
            "Use `tf.where(mask, scores, -6e4)`, or a factor that float16 holds, such as -6e4.",
            event.location,
        )


def _products(facts: SourceFacts) -> Iterator[tuple[Operation | Call, tuple[Value, ...]]]:
    for operation in facts.operations:
        if operation.operator == "*" and len(operation.operands) == 2:
            yield operation, operation.operands
    for call in facts.calls_of(*MULTIPLY):
        yield call, call.args


def _overflows(value: Value) -> bool:
    number = known(value)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return abs(number) > LARGEST_HALF
    if isinstance(value, Operation) and value.operator == "-" and len(value.operands) == 1:
        return _overflows(value.operands[0])
    if isinstance(value, Api):
        return value.name in WIDE_LIMITS
    return (
        isinstance(value, Call)
        and isinstance(value.callee, Api)
        and value.callee.is_(*MADE_CONSTANT)
        and any(_overflows(one) for one in value.args[:1])
    )


def _is_mask(facts: SourceFacts, value: Value) -> bool:
    """Whether it certainly holds zeros and ones."""
    return bool(options(value)) and all(_is_one_mask(facts, one) for one in options(value))


def _is_one_mask(facts: SourceFacts, value: Value) -> bool:
    """1 - something, what a condition was cast to, or another shape of such a mask."""
    if isinstance(value, Operation):
        return value.operator == "-" and len(value.operands) == 2 and known(value.operands[0]) in (1, 1.0)
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return False
    name = public_name(value.callee.name).rpartition(".")[2]
    if value.callee.is_(*CAST) and value.args and facts.dtype_of(value.args[0]) == "bool":
        return True
    return name in MASKS or (name in RESHAPING and bool(value.args) and _is_mask(facts, value.args[0]))


def _is_half(facts: SourceFacts, value: Value, context: Context) -> bool:
    dtype = facts.dtype_of(value)
    return dtype == "float16" or (dtype == AUTOCAST and computes_in_half(facts, value, context, only="float16"))
