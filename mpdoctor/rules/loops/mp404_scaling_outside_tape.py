"""The loss is scaled after the GradientTape has closed, so the tape does not record the scaling.

## Why it matters
`tape.gradient(scaled_loss, …)` returns None for every variable, because the multiplication was not recorded,
and applying None raises `ValueError: No gradients provided for any variable` (the same in Keras 3.15, tf_keras
2.21 and TensorFlow 2.10). Scale the loss inside the `with` block. Entering the same tape again for it is right
too.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    scaled_loss = optimizer.scale_loss(loss)
    gradients = tape.gradient(scaled_loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
        scaled_loss = optimizer.scale_loss(loss)
    gradients = tape.gradient(scaled_loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
```

## Versions
All: `get_scaled_loss` in Keras 2, `scale_loss` in Keras 3.

## Where users met it
Found by measuring in four versions; tensorflow/models and danijar/dreamerv2 enter the tape again, which is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeGuard

from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import SCALING
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, options, walk
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.loops.under_tapes import behind_last_under_tape, reads_what_comes_later
from mpdoctor.semantics.source.edits.statements import line_behind, statement_at, without_statement
from mpdoctor.semantics.source.loops.gradients import is_gradient_call, is_tape, target
from mpdoctor.semantics.source.loops.scaling import multiplied_by_scale
from mpdoctor.semantics.source.programs.branches import may_not_run
from mpdoctor.semantics.source.texts.written import argument_at
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
EXPLAINS = {"MP912": "model"}
CAUSES_ERROR = "No gradients provided for any variable"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for gradient in facts.method_calls("gradient"):
        if may_not_run(facts, gradient.context) or not is_gradient_call(gradient):
            continue
        tapes = [tape for tape in walk(gradient.receiver) if is_tape(tape)]
        if not tapes or _records(tapes, gradient.context):
            continue
        for scaled in _scaled(facts, target(gradient), tapes):
            if may_not_run(facts, scaled.context) or _records(tapes, scaled.context):
                continue
            expression = text_at(facts, scaled.location) or "the loss"
            yield Finding(
                f"`{expression}` comes after the tape's `with` block, so the tape does not record it: `gradient` "
                "returns None for every variable, and applying that raises ValueError.",
                "Move it into the `with tf.GradientTape()` block, after the loss, or enter the tape again for it: "
                "`with tape:`.",
                scaled.location,
                fix=_fix(facts, scaled, gradient),
            )


def _fix(facts: SourceFacts, scaled: Call | Operation, gradient: Call) -> Fix | None:
    """The edit that moves the line below that of the loss, inside the tape, and below the loop that sums the loss."""
    moved = statement_at(facts, scaled.location)
    losses = [loss for value in _values_in(scaled) for loss in options(value) if _is_recorded(loss)]
    if moved is None or len(losses) != 1 or losses[0].context.function is not scaled.context.function:
        return None
    is_assignment = bool(re.match(r"\w+ = ", moved.text)) and "\n" not in moved.text
    if not is_assignment or reads_what_comes_later(facts, losses[0].location.end_line, moved.text):
        return None
    title = "Move the scaling inside the tape"
    if losses[0].context.loops > scaled.context.loops:
        place = argument_at(facts, scaled.location, 0, "loss")
        summed = "" if place is None else text_at(facts, place)
        here = behind_last_under_tape(facts, gradient.location, summed, moved.text)
    else:
        here = line_behind(facts, losses[0].location, moved.text)
    return safe_fix(title, here, without_statement(facts, scaled.location))


def _scaled(facts: SourceFacts, loss: Value | None, tapes: list[Value]) -> Iterator[Call | Operation]:
    """The last scaling, whose result is differentiated: by a wrapper, or by any factor of what a tape has recorded."""
    for option in options(loss):
        if isinstance(option, Call):
            is_scaling = option.method in SCALING and option.receiver is not None
        else:
            is_mixed = facts.shows_mixed_precision
            is_scaling = isinstance(option, Operation) and is_mixed and _resizes_recorded(option, tapes)
        if isinstance(option, (Call, Operation)) and (is_scaling or multiplied_by_scale(option)):
            yield option


def _resizes_recorded(operation: Operation, tapes: list[Value]) -> bool:
    """Whether it multiplies or divides what one of the tapes has recorded."""
    inside = (part for value in operation.operands for part in options(value))
    is_recorded = any(isinstance(part, (Call, Operation)) and _records(tapes, part.context) for part in inside)
    return operation.operator in ("*", "/") and is_recorded


def _values_in(scaled: Call | Operation) -> tuple[Value, ...]:
    given = scaled.argument(0, "loss") if isinstance(scaled, Call) else None
    return scaled.operands if isinstance(scaled, Operation) else (given,) if given is not None else ()


def _is_recorded(loss: Value) -> TypeGuard[Call | Operation]:
    """Whether it was computed under some tape."""
    if not isinstance(loss, (Call, Operation)):
        return False
    return any(is_tape(part) for value in loss.context.withs for part in walk(value))


def _records(tapes: list[Value], context: Context) -> bool:
    """Whether one of these tapes is open there; a `with` of something unknown may be one of them. The tape of an object
    that was given one in each of several steps is any of those that one line makes."""
    places = {tape.location for tape in tapes}
    return any(is_tape(part) and part.location in places for value in context.withs for part in walk(value))
