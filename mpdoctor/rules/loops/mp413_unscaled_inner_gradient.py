"""A gradient penalty takes an inner gradient through float16 layers without scaling its target.

## Why it matters
The inner `tape.gradient` runs backward through float16 layers like the outer one, but without any loss scale.
Where the outputs hardly depend on the inputs, its values become zero (a gradient of norm 2.4e-07 came out as 0,
and came out right when its target was scaled and the result divided again). Where they depend strongly, its
values are inf. The penalty, `(norm - 1)²` or a sum of squares, is then computed from zeros or NaN.

In many critics neither happens, and nothing is lost. A check that trains the program repeats the last batch in float32
and compares the gradients; if that batch takes no penalty, it repeats the last of the 16 before it that does. If the
gradients agree, this is only advice. If no batch can be compared, it stays a warning.

## Flagged
```python
# keras: 3
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
critic = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())


def step(x):
    with tf.GradientTape() as tape:
        with tf.GradientTape() as inner:
            inner.watch(x)
            score = critic(x)
        slope = inner.gradient(score, x)
        loss = optimizer.scale_loss(tf.reduce_mean((tf.norm(slope, axis=-1) - 1.0) ** 2))
    optimizer.apply(tape.gradient(loss, critic.trainable_variables), critic.trainable_variables)
```

## Fixed
```python
# keras: 3
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
critic = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())


def step(x):
    with tf.GradientTape() as tape:
        with tf.GradientTape() as inner:
            inner.watch(x)
            score = optimizer.scale_loss(critic(x))
        slope = inner.gradient(score, x) / optimizer.dynamic_scale
        loss = optimizer.scale_loss(tf.reduce_mean((tf.norm(slope, axis=-1) - 1.0) ** 2))
    optimizer.apply(tape.gradient(loss, critic.trainable_variables), critic.trainable_variables)
```

## Versions
All.

## Where users met it
tensorflow/tensorflow#48662, tensorflow/neural-structured-learning#96.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from mpdoctor.facts.reference import InnerGradientFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_of_super
from mpdoctor.program.policy_settings import UNSURE
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import MISSING, Value, known, walk
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.loops.scaled_inner_gradients import scaled_inner_gradient
from mpdoctor.semantics.source.layers.model_layers import policies_set
from mpdoctor.semantics.source.loops.float16_layers import is_differentiated_in_float32
from mpdoctor.semantics.source.loops.gradients import (
    gradient_calls,
    is_gradient_call,
    is_tape,
    is_without_tape,
    sources,
    target,
)
from mpdoctor.semantics.source.loops.loss_scale_signs import may_be_scaled_in
from mpdoctor.semantics.source.programs.branches import exclude_each_other, is_for_float32

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
HELP = (
    "Scale its target inside the inner tape, or scale `output_gradients`, and divide the gradient by the same number "
    'in float32. Or give the layers that it runs through `dtype="float32"`.'
)
HELP_WITHOUT_TAPE = (
    "Multiply its target by a number such as 1024, and divide the gradient by the same number in float32. Or give the "
    'layers that it runs through `dtype="float32"`.'
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    gradients = gradient_calls(facts)
    for inner in gradients:
        if inner.context.guarded or not _is_recorded(inner) or _may_be_scaled(facts, inner):
            continue
        if not _runs_in_float16(facts, inner):
            continue
        if is_differentiated_in_float32(facts, target(inner), sources(inner)):
            continue
        if any(outer is not inner and _is_made_from(target(outer), inner) for outer in gradients):
            yield Finding(
                "This inner gradient runs through float16 layers without a loss scale: values below 3e-08 become zero "
                "in the penalty that is computed from it.",
                HELP_WITHOUT_TAPE if is_without_tape(inner) else HELP,
                inner.location,
                fix=_fix(facts, inner),
            )


def _fix(facts: SourceFacts, inner: Call) -> Fix | None:
    if is_without_tape(inner):
        return None
    return unsafe_fix("Scale the inner gradient by 1024", *scaled_inner_gradient(facts, inner))


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    for line in dict.fromkeys(seen.location for seen in training.inner_gradients if seen.location is not None):
        lost = [seen for seen in training.inner_gradients if seen.location == line and seen.is_lost]
        if lost:
            yield Finding(
                f"In the last batch of the short training that takes it, this inner gradient {_lost(lost[0])}: it runs "
                "through float16 layers without a loss scale.",
                HELP,
                line,
                model=training.model.id,
                evidence={"numbers": lost[0].numbers, "flushed": lost[0].flushed, "apart": lost[0].apart},
            )


def in_light_of(finding: Finding, training: TrainingFacts) -> Finding:
    """Advice where the training's last batch was run once more in float32 and nothing is lost of the gradient."""
    place = finding.location
    on_line = [
        seen
        for seen in training.inner_gradients
        if place and seen.location and (seen.location.path, seen.location.line) == (place.path, place.line)
    ]
    if not on_line or not all(seen.is_kept for seen in on_line):
        return finding
    worst = max(on_line, key=lambda seen: seen.apart)
    return dataclasses.replace(
        finding,
        message="This inner gradient runs through float16 layers without a loss scale. It came to no harm in the last "
        f"batch of the short training that takes it: {_kept(worst)}. Where it falls below 3e-08, it becomes zero.",
        severity=Severity.INFO,
        fix=None,
        evidence={**finding.evidence, "numbers": worst.numbers, "flushed": worst.flushed, "apart": worst.apart},
    )


def _kept(seen: InnerGradientFacts) -> str:
    zeros = f", and {seen.flushed} of its {seen.numbers} numbers became zero" if seen.flushed else ""
    return f"it is {seen.apart:.2%} from what float32 computes{zeros}"


def _lost(seen: InnerGradientFacts) -> str:
    if math.isfinite(seen.apart):
        return f"has {seen.flushed} zeros among the {seen.numbers} numbers that are not zero in float32"
    return "is inf or NaN, and not so in float32"


def _runs_in_float16(facts: SourceFacts, inner: Call) -> bool:
    """Whether the policy in force is mixed_float16, perhaps only behind `if args.amp:`, in a program that sets no
    other. (In a function that nobody is seen to call, callers may set it.)"""
    policies = set(facts.policies_of_program_at(inner))
    if policies == {"mixed_float16"}:
        return True
    is_only_one = all(set(policies_set(call)) == {"mixed_float16"} for call in facts.policy_calls)
    is_excluded = all(exclude_each_other(call.context, inner.context) for call in facts.policy_calls)
    may_be = policies != {None} and policies <= {None, UNSURE, "mixed_float16"}
    return may_be and is_only_one and not is_excluded and not is_for_float32(inner.context)


def _may_be_scaled(facts: SourceFacts, inner: Call) -> bool:
    """Whether the gradient is scaled, through its target or through `output_gradients`."""
    factors_given = inner.argument(2, "grad_ys" if is_without_tape(inner) else "output_gradients")
    behind = (part for part in walk(target(inner)) if isinstance(part, Call) and is_gradient_call(part))
    targets = target(inner), *map(target, behind)
    if factors_given is not None or any(may_be_scaled_in(facts, each) for each in targets):
        return True
    factors = [part for part in walk(target(inner)) if isinstance(part, Operation) and part.operator == "*"]
    return any(
        _is_same_number(divided.operands[-1], operand)
        for divided in facts.operations
        if divided.operator == "/" and any(part is inner for part in walk(divided.operands[0]))
        for factor in factors
        for operand in factor.operands
    )


def _is_same_number(value: Value, other: Value) -> bool:
    return value is other or (known(value) is not MISSING and known(value) == known(other) != 1)


def _is_recorded(gradient: Call) -> bool:
    """Whether another tape is open where this gradient is taken."""
    own = [tape for tape in walk(gradient.receiver) if is_tape(tape)]
    open_tapes = [tape for value in gradient.context.withs for tape in walk(value) if is_tape(tape)]
    is_elsewhere = any(all(open_tape is not tape for tape in own) for open_tape in open_tapes)
    return is_elsewhere and not is_of_super(gradient)


def _is_made_from(loss: Value | None, inner: Call) -> bool:
    return any(value is inner for value in walk(loss))
