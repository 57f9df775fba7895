"""Scaled gradients are summed over steps between which the loss scale may change.

## Why it matters
The loss scale can change whenever gradients are applied. Adding up micro-batches and applying their sum once is
right, because all of them were multiplied by the same scale (tried: 0.176 either way). A sum or running average
that is kept across an apply call mixes scales: over four steps in which the scale doubled twice, a sum of
scaled gradients was 0.66 of the last scale where 1.76 was right, and one overflow leaves inf in it for good.
Unscale the gradients before adding them up.

Variables that are applied themselves and never set back to zero have the same problem: four gradients of 1.0,
each applied under twice the scale of the one before, added up to 1.875, and after one overflow every step was
skipped and the scale halved (Keras 3.15, TensorFlow 2.10 and 2.4).

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
# before the first step: optimizer.build(model.trainable_variables), which makes `dynamic_scale`


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

import ast
from collections.abc import Iterator

from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import put_behind, unsafe_fix
from mpdoctor.semantics.source.edits.loops.scaled_losses import unscaled_at_tape, zeroed_behind
from mpdoctor.semantics.source.loops.gradient_sums import (
    adds_up,
    are_new,
    holders_of,
    is_made_from,
    may_be_set_back,
    scaled_gradients_given,
)
from mpdoctor.semantics.source.loops.gradients import UNSCALING, applied_gradients, given_to, target
from mpdoctor.semantics.source.loops.scaling import applied_by_its_scaler, holds_gradient, scaling_calls
from mpdoctor.semantics.source.programs.attribute_access import same_object
from mpdoctor.semantics.source.programs.branches import contradicts_itself, may_not_run
from mpdoctor.semantics.source.texts.syntax_trees import called
from mpdoctor.semantics.source.texts.written import argument_at, expression_written
from mpdoctor.semantics.wording import receiver_text

SEVERITY = Severity.WARNING
NEVER_RAISES = True
FIXES = ("unsafe",)
EXPLAINS = {"MP912": "model", "MP405": "training"}
AVERAGE_INSIDE = (
    "Leave the average to the optimizer inside (`SGD(momentum=0.9)`, `Adam(beta_1=0.9)`), which is given gradients "
    "that are unscaled and finite."
)
SET_BACK = (
    "Set the variables back to zero after each time that they are applied, `variable.assign(tf.zeros_like(variable))`: "
    "then all gradients in them carry the same scale."
)
KEEPING = ("assign_add", "assign_sub", "assign")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in facts.method_calls(*KEEPING):
        if may_not_run(facts, call.context) or contradicts_itself(call.context) or not _keeps_what_was(call):
            continue
        for gradient in scaled_gradients_given(facts, call):
            apply = next(_applied_each_time(facts, gradient, call), None)
            kept = next(_applied_and_kept(facts, gradient, call), None) if apply is None else None
            if apply is not None or kept is not None:
                yield Finding(
                    f"`{call.method}` adds up gradients that are still multiplied by the loss scale, and "
                    f"`{(apply or kept or call).method}` may change the scale after each of them: the sum mixes "
                    "several scales, and an overflow stays in it.",
                    _help_for_step(facts, apply) if apply is not None else _help_for_kept(call),
                    call.location,
                    fix=_fix_of_step(facts, call, apply, gradient)
                    if apply is not None
                    else _fix_by_setting_back(facts, call, kept),
                )


def _keeps_what_was(call: Call) -> bool:
    """Whether the variable holds something of what it held before: the norm of each step, put down to be logged, takes
    the place of the last one."""
    variable = call.receiver
    return variable is None or adds_up(call, holders_of(variable) or (variable,))


def _help_for_kept(kept: Call) -> str:
    """The help text: a sum is set back to zero; an average, which is meant to persist, is taken of unscaled
    gradients."""
    return SET_BACK if _is_sum(kept) else AVERAGE_INSIDE


def _help_for_step(facts: SourceFacts, apply: Call) -> str:
    if not facts.keras.is_keras3:
        return f"Add up the result of `{UNSCALING}` instead."
    of = receiver_text(facts, apply)
    return (
        f"Divide them by `{of}.dynamic_scale` before adding them up. It exists once the optimizer is built, so "
        f"call `{of}.build(model.trainable_variables)` before the first step."
    )


def _fix_of_step(facts: SourceFacts, kept: Call, apply: Call, gradient: Call) -> Fix | None:
    """The edits that unscale the gradients: in Keras 2 after the tape, in Keras 3 where they are added up."""
    if not facts.keras.is_keras3:
        unscaling = [
            call
            for call in facts.method_calls(UNSCALING)
            if holds_gradient(call.argument(0), gradient, through_unscaling=False)
        ]
        edits = unscaled_at_tape(facts, unscaling[0], gradient) if len(unscaling) == 1 else None
        return unsafe_fix("Unscale before adding up", edits)
    given = argument_at(facts, kept.location, 0, "delta", "value")
    written = expression_written(facts, given) if given is not None else None
    if given is None or not _is_as_large(written) or not _is_built(facts, apply):
        return None
    by = f" / {receiver_text(facts, apply)}.dynamic_scale"
    return unsafe_fix("Divide by the loss scale", put_behind(facts, given, by))


def _is_as_large(written: ast.expr | None) -> bool:
    """Whether it is proportional to the gradients: the gradients themselves, or their norm."""
    if isinstance(written, ast.Call):
        return called(written) in ("abs", "norm", "global_norm")
    return isinstance(written, ast.Name)


def _is_built(facts: SourceFacts, apply: Call) -> bool:
    """Whether the program builds the optimizer, so that its `dynamic_scale` exists. fit() builds it in time only with a
    distribution strategy (Keras 3.15)."""
    made = apply.receiver
    return any(
        call.receiver is not None and made is not None and same_object(call.receiver, made)
        for call in facts.method_calls("build")
    )


def _fix_by_setting_back(facts: SourceFacts, kept: Call, apply: Call | None) -> Fix | None:
    """The edit that sets the variables back to zero; None for averages, which are meant to persist."""
    edit = zeroed_behind(facts, apply) if apply is not None and _is_sum(kept) else None
    return unsafe_fix("Set the sum back to zero", edit)


def _is_sum(kept: Call) -> bool:
    given = kept.argument(0, "value")
    return kept.method == "assign_add" or (
        isinstance(given, Operation)
        and given.operator == "+"
        and not any(isinstance(operand, Operation) for operand in given.operands)
    )


def _applied_and_kept(facts: SourceFacts, gradient: Call, kept: Call) -> Iterator[Call]:
    """The calls of a LossScaleOptimizer that apply the variables in which gradients are added up, where those variables
    are never set back to zero."""
    holders = holders_of(kept.receiver)
    if not holders or not adds_up(kept, holders):
        return
    for apply in facts.method_calls(*APPLYING):
        if may_not_run(facts, apply.context) or not is_made_from(given_to(apply), holders) or are_new(holders, apply):
            continue
        if applied_by_its_scaler(facts, apply, gradient) and not may_be_set_back(facts, holders, kept):
            yield apply


def _loops_around(call: Call) -> int:
    return call.context.loops - call.context.comprehensions


def _applied_each_time(facts: SourceFacts, gradient: Call, kept: Call) -> Iterator[Call]:
    """The calls of a LossScaleOptimizer that apply a gradient in the step in which it is kept, or another one, of other
    variables, with the same loss scale."""
    scalers = [scaling.receiver for scaling in scaling_calls(target(gradient)) if scaling.receiver is not None]
    for apply, applied in applied_gradients(facts):
        if not applied_by_its_scaler(facts, apply, applied) or not _each_time(apply, kept, gradient):
            continue
        of, is_same = apply.receiver, applied is gradient
        if is_same or (of is not None and any(same_object(of, scaler) for scaler in scalers)):
            yield apply


def _each_time(apply: Call, kept: Call, gradient: Call) -> bool:
    """Whether the gradients are applied in the same step in which they are kept, and not once in so many steps, or
    behind the loop that takes them of so many batches."""
    if gradient.context.run == apply.context.run and _loops_around(gradient) > _loops_around(apply):
        return False
    arms = {branch.statement: branch.taken for branch in kept.context.branches}
    return apply.context.run == kept.context.run and all(
        arms.get(branch.statement) is branch.taken for branch in apply.context.branches
    )
