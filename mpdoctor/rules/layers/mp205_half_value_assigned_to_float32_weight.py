"""`call()` assigns a 16-bit value to a weight that is float32.

## Why it matters
Inside `call()` a layer reads its weights and inputs as float16, so their average is float16 too, but the weight
itself is float32. In Keras 2 up to TensorFlow 2.15 `self.mean.assign(0.9 * self.mean + 0.1 * batch)` raises:
`Tensor conversion requested dtype float32 for Tensor with dtype float16` (seen in 2.15 and 2.10). tf_keras 2.21
and Keras 3 cast the value for a weight made by `add_weight`. A tf.Variable that the layer makes raises in all
of them.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Average(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.mean = tf.Variable(tf.zeros((4,)), trainable=False)

    def call(self, inputs):
        self.mean.assign(tf.reduce_mean(inputs, axis=0))
        return inputs
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Average(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.mean = tf.Variable(tf.zeros((4,)), trainable=False)

    def call(self, inputs):
        self.mean.assign(tf.cast(tf.reduce_mean(inputs, axis=0), self.mean.dtype))
        return inputs
```

## Versions
Weights from `add_weight`, and those of a layer inside (`self.conv.kernel.assign(…)`, measured in TensorFlow 2.4, 2.10
and 2.15): Keras 2 up to TensorFlow 2.15, and tf_keras where a part is assigned (`scatter_nd_update`; tf_keras 2.21).
`K.moving_average_update` of a weight raises up to TensorFlow 2.15. A weight made with `experimental_autocast=False`:
Keras 2 and tf_keras (TensorFlow 2.4, 2.10 and 2.15, tf_keras 2.21). A `tf.Variable`, or a slice of one
(`self.queue[:8].assign(…)`): all.

## Where users met it
tensorflow/addons#2398, tensorflow/addons#2405, tensorflow/addons#2411, tensorflow/addons#2500,
tensorflow/tensorflow#46001, tensorflow/model-optimization#409.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF, MIXED
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Item, Value, known, options
from mpdoctor.semantics.live.errors.dtype_errors import half_given_for_float32
from mpdoctor.semantics.source.edits.casts import cast_argument
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, policies_made_with, runs_in_layer
from mpdoctor.semantics.source.layers.layer_variables import ASSIGNING, is_raw_variable_of_layer, is_stored_as_computed
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.weight_values import weight_holder
from mpdoctor.semantics.source.operands.mixed_operands import is_half
from mpdoctor.semantics.source.texts.written import argument_text
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
ONLY_IN_HALF = True
UPDATES = (
    *("keras.backend.update", "keras.backend.update_add", "keras.backend.update_sub"),
    *("tensorflow.compat.v1.assign", "tensorflow.compat.v1.assign_add", "tensorflow.compat.v1.assign_sub"),
)
SCATTERING = ("scatter_nd_update", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_max", "scatter_nd_min")
SCATTERING_SLICES = ("scatter_update", "scatter_add", "scatter_sub", "batch_scatter_update")
SLICES = "tensorflow.IndexedSlices"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for call in facts.method_calls(*ASSIGNING):
        value = call.argument(0, "value") or call.argument(0, "delta")
        yield from _assigned(facts, call, (call.receiver, value), 0)
    for call in facts.calls_of(*UPDATES):
        yield from _assigned(facts, call, (call.argument(0, "x") or call.keyword("ref"), call.argument(1, "value")), 1)
    if facts.keras.package == "tf.keras":  # tf_keras 2.21 does it
        yield from _moving_averages(facts)
    for call in facts.method_calls(*SCATTERING):
        yield from _assigned(facts, call, (call.receiver, call.argument(1, "updates")), 1)
    for call in facts.method_calls(*SCATTERING_SLICES):
        slices = call.argument(0, "sparse_delta")
        values = slices.argument(0, "values") if isinstance(slices, Call) and is_call_of(slices, SLICES) else None
        yield from _assigned(facts, call, (call.receiver, values), None)


def _assigned(
    facts: SourceFacts, call: Call, assigned: tuple[Value | None, Value | None], position: int | None
) -> Iterator[Finding]:
    """The finding for an assignment that puts a 16-bit value into a float32 variable in `call()`. `assigned`: the
    variable and its value; `position`: that of the value among the call's arguments."""
    target, value = assigned
    if value is None or asks_for_dtype(call.context) or not runs_in_layer(facts, call.context):
        return
    if _stays_float32(facts, call, target) and is_half(facts, value, call.context):
        text = text_at(facts, value.location)
        fix = None if position is None else cast_argument(facts, call.location, position=position)
        yield Finding(
            f"{f'`{text}`' if text else 'The assigned value'} is 16-bit in `call()`, but the variable is "
            "float32: this line raises under a mixed policy.",
            "Cast it to the variable's own dtype: `tf.cast(…, tf.float32)`.",
            call.location,
            fix=safe_fix("Cast the value to float32", fix),
        )


def _moving_averages(facts: SourceFacts) -> Iterator[Finding]:
    """Updates by `K.moving_average_update` in `call()`, which reads the weight in 16 bits, multiplies with a float32
    number, and raises whatever the value's dtype (TensorFlow 2.4, 2.10, 2.15)."""
    for call in facts.calls_of("keras.backend.moving_average_update"):
        target = call.argument(0, "x")
        if asks_for_dtype(call.context) or not runs_in_layer(facts, call.context) or not _all_are_read_in_half(target):
            continue
        if _stays_float32(facts, call, target):
            weight = argument_text(facts, call.location, "x", 0) or "the weight"
            yield Finding(
                f"In `call()`, `moving_average_update` reads `{weight}` in 16 bits and multiplies with a float32 "
                "number: this line raises under a mixed policy.",
                f"Add `{weight}` with `experimental_autocast=False`, cast it where it meets the layer's input, and "
                "hand in a float32 value, `tf.cast(…, tf.float32)`.",
                call.location,
            )


def _all_are_read_in_half(target: Value | None) -> bool:
    """Whether it is a weight on every path, and one that `call()` reads in 16 bits."""
    return bool(options(target)) and all(
        is_weight(option) and not _is_kept_from_casting(option) for option in options(target)
    )


def _is_kept_from_casting(weight: Value) -> bool:
    return isinstance(weight, Call) and known(weight.keyword("experimental_autocast")) is False


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    line, half = failure.failing_line, half_given_for_float32(failure)
    if half is not None and failure.inside == "layer" and ".assign" in line:
        yield Finding(
            f"`{line.strip()}` assigns a 16-bit value to a float32 variable: this line raised.",
            "Cast it to the variable's own dtype: `tf.cast(…, tf.float32)`.",
            failure.location,
            layer=failure.layer,
            evidence={"exception": failure.exception, "error": failure.message},
        )


def _stays_float32(facts: SourceFacts, call: Call, target: Value | None) -> bool:
    """Whether it is, on every path, a float32 variable that does not cast the value it is assigned, or a slice of a
    variable that the layer makes itself."""
    return bool(options(target)) and all(_is_float32_variable(facts, call, option) for option in options(target))


def _is_float32_variable(facts: SourceFacts, call: Call, target: Value) -> bool:
    if isinstance(target, Item) and isinstance(target.of, Call) and not is_weight(target.of):
        target = target.of
    holder = weight_holder(target)
    if holder is not None:
        is_of_old_keras = not facts.keras.is_keras3 and facts.keras.package == "tf.keras"
        return is_of_old_keras and all(_keeps_float32_weights(facts, option) for option in options(holder))
    if not isinstance(target, Call):
        return False
    if is_weight(target):
        if not facts.keras.is_keras3 and _is_kept_from_casting(target):
            return facts.dtype_of(target) in ("float32", "variable")  # a plain tf.Variable, which casts nothing
        casts = facts.keras.is_keras3 or (facts.keras.package != "tf.keras" and "scatter" not in call.method)
        return not casts and facts.dtype_of(target) == "autocast" and not is_stored_as_computed(facts, target)
    return is_raw_variable_of_layer(facts, target) and facts.dtype_of(target) == "float32"


def _keeps_float32_weights(facts: SourceFacts, layer: Value) -> bool:
    """Whether it is a layer of Keras' own, made under a mixed policy."""
    if not isinstance(layer, Call) or layer_name(layer) is None:
        return False
    policies = policies_made_with(facts, layer, None)
    return not set(MIXED).isdisjoint(policies) and set(HALF).isdisjoint(policies)
