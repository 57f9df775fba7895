"""Unscaled gradients are added up in float16 variables.

## Why it matters
The loss scale kept small gradients above float16's smallest number, but unscaled gradients have their own size
again. In a float16 variable eight gradients of 2e-8 added up to 0, and 8,192 gradients of 1e-3 added up to 4.0
(TensorFlow 2.21 and 2.10). No step is skipped, and nothing is inf.

## Flagged
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.layers.Dense(1, dtype="float32", input_shape=(4,))])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
sums = [tf.Variable(tf.zeros(w.shape, tf.float16), trainable=False) for w in model.trainable_variables]


def collect(x, y):
    with tf.GradientTape() as tape:
        loss = optimizer.get_scaled_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, model.trainable_variables))
    for total, gradient in zip(sums, gradients):
        total.assign_add(tf.cast(gradient, tf.float16))


def apply():
    optimizer.apply_gradients(zip([tf.cast(total, tf.float32) for total in sums], model.trainable_variables))
```

## Fixed
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.layers.Dense(1, dtype="float32", input_shape=(4,))])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
sums = [tf.Variable(tf.zeros(w.shape, tf.float32), trainable=False) for w in model.trainable_variables]


def collect(x, y):
    with tf.GradientTape() as tape:
        loss = optimizer.get_scaled_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, model.trainable_variables))
    for total, gradient in zip(sums, gradients):
        total.assign_add(gradient)


def apply():
    optimizer.apply_gradients(zip(sums, model.trainable_variables))
```

## Versions
All. Not reported: sums in bfloat16, which has float32's range, and sums of gradients that are still multiplied
by the loss scale, which are large enough.

## Where users met it
keras-team/keras#14829, tensorflow/tensorflow#50454.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, is_api, options
from mpdoctor.semantics.source.edits.expressions import dtype_named_instead, unsafe_fix
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.loops.gradients import given_to, is_gradient_call, target, unscales, until_gradients
from mpdoctor.semantics.source.loops.loss_scale_signs import may_be_scaled_in
from mpdoctor.semantics.source.loops.scaling import divided_by_scale
from mpdoctor.semantics.source.texts.written import argument_at

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
KEEPING = ("assign_add", "assign")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for kept in facts.method_calls(*KEEPING):
        if kept.context.guarded or not _is_kept_in_half(facts, kept):
            continue
        if _is_unscaled(facts, kept.argument(0)):
            variables = _variables_applied(facts, kept)
            if variables:
                yield Finding(
                    f"`{kept.method}` adds unscaled gradients to a float16 variable: those below 3e-08 become 0, as "
                    "they would without a loss scale, and those much smaller than the sum are lost.",
                    "Make the variable float32, and add the gradients to it in float32.",
                    kept.location,
                    fix=_fix(facts, kept, variables),
                )


def _is_kept_in_half(facts: SourceFacts, kept: Call) -> bool:
    """Whether the variable is float16: by that name, or by the compute dtype of the policy in force."""
    dtype = facts.dtype_of(kept.receiver)
    if dtype == AUTOCAST:
        return precision_of(facts).half(kept.receiver, kept.context) == "float16" and not asks_for_dtype(kept.context)
    return dtype == "float16" or _is_of_keras(kept.receiver)


def _is_of_keras(variable: Value | None) -> bool:
    """Whether it is a variable of Keras 3's that is told to be float16."""
    return bool(options(variable)) and all(
        isinstance(option, Call)
        and is_api(option.callee, "keras.Variable")
        and dtype_named(option.argument(2, "dtype")) == "float16"
        for option in options(variable)
    )


def _is_unscaled(facts: SourceFacts, value: Value | None) -> bool:
    """Whether it is made of gradients, none of which may still be multiplied by a loss scale."""
    parts = list(until_gradients(value, lambda part: unscales(part) or divided_by_scale(part)))
    unscaled = [part for part in parts if unscales(part) or divided_by_scale(part)]
    inside = [inner for part in unscaled for inner in until_gradients(part)]
    # where another path unscales them, the loss is scaled on that path: `if mixed:` stands before both
    as_taken = [part for part in parts if isinstance(part, Call) and is_gradient_call(part) and part not in inside]
    if any(may_be_scaled_in(facts, target(gradient)) for gradient in as_taken):
        return False
    return bool(as_taken) or any(map(is_gradient_call, inside))


def _variables_applied(facts: SourceFacts, kept: Call) -> list[Call]:
    """The calls that make the variables, where an optimizer applies their values; others may be for a plot. A name that
    may also hold something else is not reported."""
    made = [option for option in options(kept.receiver) if isinstance(option, Call)]
    if len(made) != len(options(kept.receiver)):
        return []
    applied = {id(part) for call in facts.method_calls(*APPLYING) for part in until_gradients(given_to(call))}
    return made if all(id(variable) in applied for variable in made) else []


def _fix(facts: SourceFacts, kept: Call, variables: list[Call]) -> Fix | None:
    """The edits that make the variables float32 and cast the gradients added to them."""
    made = [dtype_named_instead(facts, variable.location, "float16", "float32") for variable in variables]
    given = argument_at(facts, kept.location, 0, "delta", "value")
    cast = dtype_named_instead(facts, given, "float16", "float32") if given is not None else None
    if facts.dtype_of(kept.argument(0)) == "float32":  # Keras' own variables cast the values assigned to them
        return unsafe_fix("Keep them in float32", *made)
    return unsafe_fix("Keep them in float32", *made, cast)
