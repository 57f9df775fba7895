"""Scaled gradients are summed over steps between which the loss scale may change.

## Why it matters
The scale changes when gradients are applied. Adding up micro-batches and applying their sum once is right,
because all of them carry one scale (tried: 0.176 either way). A sum or running average that lives on across
an apply call mixes scales: over four steps in which the scale doubled twice, a sum of scaled gradients was
0.66 of the last scale where 1.76 was right, and one overflow leaves inf in it for good. Unscale what is
added up.

## Flagged
```python
# keras: 3
import keras
import tensorflow as tf

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def step(model, sums, x, y):
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = tape.gradient(loss, model.trainable_variables)
    for total, gradient in zip(sums, gradients):
        total.assign_add(gradient)
    optimizer.apply(gradients, model.trainable_variables)
```

## Fixed
```python
# keras: 3
import keras
import tensorflow as tf

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def step(model, sums, x, y):
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = tape.gradient(loss, model.trainable_variables)
    for total, gradient in zip(sums, gradients):
        total.assign_add(gradient / optimizer.dynamic_scale)
    optimizer.apply(gradients, model.trainable_variables)
```

## Versions
All.

## Where users met it
keras-team/keras#14829, tensorflow/tensorflow#50454, andreped/GradientAccumulator#64.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Finding, Severity
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Call, Value
from mpdoctor.semantics.source.optimizers.gradients import applied_gradients, is_gradient_call, until_gradients
from mpdoctor.semantics.source.optimizers.scaling import (
    UNSCALING,
    applied_by_its_scaler,
    divided_by_scale,
    is_of_scaled_loss,
    unscales,
)

SEVERITY = Severity.WARNING
EXPLAINS = {"MP912": "model"}
OF_ITS_SHAPE = ("zeros_like", "ones_like", "shape", "size", "rank")
KEEPING = ("assign_add", "assign_sub", "assign")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in facts.method_calls(*KEEPING):
        for gradient in _scaled_gradients(facts, call) if not call.context.guarded else ():
            apply = next(_applied_each_time(facts, gradient, call), None)
            if apply is not None:
                yield Finding(
                    f"`{call.method}` keeps gradients that still carry the loss scale, and `{apply.method}` may "
                    "change the scale after each of them: what is kept mixes several scales, and an overflow stays "
                    "in it.",
                    "Keep unscaled gradients: divide by `optimizer.dynamic_scale` first."
                    if facts.keras.is_keras3
                    else f"Keep what `{UNSCALING}` gives.",
                    call.location,
                )


def _applied_each_time(facts: SourceFacts, gradient: Call, kept: Call) -> Iterator[Call]:
    """The calls of a LossScaleOptimizer that apply a gradient in the step in which it is kept."""
    for apply, applied in applied_gradients(facts):
        if applied is gradient and applied_by_its_scaler(facts, apply, gradient) and _each_time(apply, kept):
            yield apply


def _scaled_gradients(facts: SourceFacts, call: Call) -> Iterator[Call]:
    """The gradients of a scaled loss that a variable is given, as they came from the tape."""
    for until_gradient in until_gradients(call.argument(0, "delta"), _holds_no_scaled):
        if (
            isinstance(until_gradient, Call)
            and is_gradient_call(until_gradient)
            and is_of_scaled_loss(facts, until_gradient)
        ):
            yield until_gradient


def _holds_no_scaled(value: Value) -> bool:
    """Whether it is made of gradients and does not carry their scale."""
    return unscales(value) or divided_by_scale(value) or (isinstance(value, Call) and value.method in OF_ITS_SHAPE)


def _each_time(apply: Call, kept: Call) -> bool:
    """Whether the gradients are applied in the same step in which they are kept, and not once in so many steps."""
    arms = {branch.statement: branch.taken for branch in kept.context.branches}
    return apply.context.run == kept.context.run and all(
        arms.get(branch.statement) is branch.taken for branch in apply.context.branches
    )
