"""Gradients are divided by the loss scale twice before they reach the weights.

## Why it matters
In Keras 3 `apply` and `apply_gradients` of a LossScaleOptimizer divide by the loss scale themselves. A loop
that divides first makes every update 32768 times too small: with SGD(0.1) a weight moved by 5.4e-06 where it
should have moved by 0.176. In Keras 2 the same happens if `get_unscaled_gradients` is called twice, or is
combined with a division by hand. Nothing raises, and Adam hides it until its epsilon dominates.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def step(x, y):
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients = [g / optimizer.dynamic_scale for g in gradients]
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
        loss = optimizer.scale_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
```

## Versions
All. Keras 2 (TensorFlow 2.4 to 2.15, tf_keras) unscales in `get_unscaled_gradients` and not in
`apply_gradients`; Keras 3 has no such method and unscales in `apply` and `apply_gradients`.

## Where users met it
keras-team/keras#19479 asks whether to unscale by hand in Keras 3.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.causes.scale_dependence import ScaleDependenceFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import SCALING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Either, Value, known, options, walk
from mpdoctor.semantics.live.fixed_scales import fixed_divisor
from mpdoctor.semantics.source.edits.expressions import left_operand_kept, unsafe_fix
from mpdoctor.semantics.source.edits.statements import passed_on
from mpdoctor.semantics.source.loops.applied_scaled import is_scaled_already
from mpdoctor.semantics.source.loops.gradients import (
    UNSCALING,
    applied_gradients,
    factor_of,
    given_to,
    is_gradient_call,
    target,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.kept_gradients import kept_gradients
from mpdoctor.semantics.source.loops.scaling import (
    FEWEST,
    applied_by_its_scaler,
    divided_by_scale,
    holds_gradient,
    initial_scales,
    multiplied_by_scale,
    multiplies_loss,
    scaling_calls,
    with_mapped,
)
from mpdoctor.semantics.source.optimizers.wrappers import starting_scale_in_words
from mpdoctor.semantics.source.programs.branches import exclude_each_other, may_not_run

SEVERITY = Severity.ERROR
NEVER_RAISES = True
FIXES = ("unsafe",)
EXPLAINS = {"MP912": "model"}
CONFIRMED_LIVE = True
BEFORE = "were already divided by the loss scale once"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if facts.keras.is_keras3:
        yield from _beside_the_wrapper(facts)
    else:
        yield from _twice_in_the_program(facts)
        yield from _before_and_behind_variables(facts)


def _beside_the_wrapper(facts: SourceFacts) -> Iterator[Finding]:
    """Keras 3: a division by hand between the tape and the apply call that divides as well."""
    numbers = initial_scales(facts)
    kept = ((apply, gradient, (*before, *behind)) for apply, gradient, before, behind in kept_gradients(facts))
    for apply, gradient, ways in (*((*pair, None) for pair in applied_gradients(facts)), *kept):
        if not _scaled_once(facts, target(gradient)) or not applied_by_its_scaler(facts, apply, gradient):
            continue
        factor = factor_of(apply.receiver)
        small = f"{starting_scale_in_words(apply.receiver)} times too small at first"
        if factor is not None:
            small = f"{factor:.15g} times too small"
        its_own = (factor,) if factor is not None and factor >= FEWEST else ()
        ways = _ways(apply, gradient) if ways is None else ways
        for division in _divisions_by_hand(facts, ways, (*numbers, *its_own)):
            yield Finding(
                f"These gradients are divided by the loss scale here and again by `{apply.method}`: every applied "
                f"gradient is {small}.",
                f"Delete this division: in Keras 3 `{apply.method}` unscales by itself.",
                division.location,
                fix=_fix(facts, division),
            )


def _fix(facts: SourceFacts, division: Value) -> Fix | None:
    """The edit that removes the division."""
    if isinstance(division, Call):
        edit = passed_on(facts, division.location, 0, "grads") if division.method == UNSCALING else None
        return unsafe_fix("Unscale once", edit)
    return unsafe_fix("Delete the division", left_operand_kept(facts, division.location, "/"))


def _ways(apply: Call, gradient: Call) -> tuple[Value, ...]:
    """What holds the gradients between the tape and the apply call."""
    return tuple(origin for origin in until_gradients(given_to(apply)) if holds_gradient(origin, gradient))


def _divisions_by_hand(facts: SourceFacts, ways: tuple[Value, ...], numbers: tuple[float, ...]) -> Iterator[Value]:
    """The divisions by the loss scale on the way, unless something multiplies by it again."""
    if any(multiplied_by_scale(part, numbers) for way in ways for part in with_mapped(facts, way)):
        return
    for way in ways:
        division = next((part for part in with_mapped(facts, way) if divided_by_scale(part, numbers)), None)
        if division is not None and not _is_guarded(facts, division):
            yield division


def _twice_in_the_program(facts: SourceFacts) -> Iterator[Finding]:
    """Keras 2: `get_unscaled_gradients` of gradients that were divided before, or a division of its result."""
    numbers = initial_scales(facts)
    unscalings: list[Call | Operation] = [*facts.method_calls(UNSCALING)]
    for unscaling in unscalings + [operation for operation in facts.operations if divided_by_scale(operation, numbers)]:
        first = _unscaled_before(facts, unscaling, numbers)
        if first is None or _is_guarded(facts, first) or may_not_run(facts, unscaling.context):
            continue
        if _is_of_loss_scaled_twice(facts, unscaling):
            continue
        wrapper = next((call.receiver for call in (unscaling, first) if isinstance(call, Call)), None)
        is_first = isinstance(unscaling, Call) and not unscales(first)
        when = f"are divided by the loss scale here and again by `{UNSCALING}`" if is_first else BEFORE
        yield Finding(
            f"These gradients {when}: every applied gradient is {starting_scale_in_words(wrapper)} times too small at "
            "first.",
            f"Unscale once: keep one `{UNSCALING}` and delete the other."
            if isinstance(unscaling, Call) and unscales(first)
            else f"Delete the division: `{UNSCALING}` divides by the loss scale.",
            first.location if is_first else unscaling.location,
            fix=_fix(facts, first if is_first else unscaling),
        )


def _before_and_behind_variables(facts: SourceFacts) -> Iterator[Finding]:
    """Keras 2: gradients that are unscaled before variables keep them, and again behind those."""
    for _, _, before, behind in kept_gradients(facts):
        again = next((part for part in behind if unscales(part)), None)
        if again is not None and any(unscales(part) or divided_by_scale(part) for part in before):
            yield Finding(
                f"These gradients {BEFORE}: every applied gradient is {starting_scale_in_words(again.receiver)} times "
                "too small at first.",
                f"Unscale once: keep one `{UNSCALING}` and delete the other.",
                again.location,
                fix=_fix(facts, again),
            )


def _is_of_loss_scaled_twice(facts: SourceFacts, unscaling: Value) -> bool:
    gradients = (part for part in until_gradients(unscaling) if isinstance(part, Call) and is_gradient_call(part))
    losses = (loss for gradient in gradients for loss in options(target(gradient)))
    return any(isinstance(loss, Call) and is_scaled_already(facts, loss) for loss in losses)


def _unscaled_before(facts: SourceFacts, unscaling: Call | Operation, numbers: tuple[float, ...]) -> Value | None:
    """The first call or division that unscaled these gradients before; two divisions by hand do not count."""
    is_call = isinstance(unscaling, Call)
    given = (unscaling.argument(0),) if isinstance(unscaling, Call) else unscaling.operands
    before = (part for value in given for part in _unscaled_in(facts, value, numbers, only_calls=not is_call))
    return next((part for part in before if not _runs_instead(part, unscaling)), None)


def _runs_instead(before: Value, unscaling: Call | Operation) -> bool:
    """Whether the two stand in different arms, or an `if` asks by a name that is True on some path (`if not done:`)."""
    is_asked = any(
        isinstance(asked, Either)
        and asked.default is None
        and all(isinstance(known(option), bool) for option in asked.options)
        for asked in unscaling.context.asked()
    )
    return is_asked or (isinstance(before, (Call, Operation)) and exclude_each_other(before.context, unscaling.context))


def _unscaled_in(
    facts: SourceFacts, value: Value | None, numbers: tuple[float, ...], only_calls: bool
) -> Iterator[Value]:
    """The calls and divisions by which the gradients in a value were unscaled. `only_calls`: without divisions."""
    for origin in until_gradients(value):
        for part in with_mapped(facts, origin):
            if unscales(part) or (not only_calls and divided_by_scale(part, numbers)):
                yield part


def _scaled_once(facts: SourceFacts, loss: Value | None) -> bool:
    calls = [call for call in scaling_calls(loss) if multiplies_loss(facts, call)]
    by_hand = sum(multiplied_by_scale(value) for value in walk(loss))
    again = sum(call.method in SCALING for call in walk(loss) if isinstance(call, Call))
    return (bool(calls) and again == 1 and not by_hand) or (by_hand == 1 and not again)


def _is_guarded(facts: SourceFacts, value: Value) -> bool:
    return isinstance(value, (Call, Operation)) and may_not_run(facts, value.context)


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    seen = training.scale_dependence
    if seen is None or not seen.is_scaled or seen.wrappers > 1:
        return
    if not seen.shrinks:
        yield from _divided_by_a_number(training, seen)
        return
    by_hand = seen.on_the_way == "divided"
    if not by_hand and seen.unscaled_calls < 2:
        return
    is_keras3 = training.model.keras.is_keras3
    if by_hand:
        how = "by the training code and again by " + ("the optimizer" if is_keras3 else f"`{UNSCALING}`")
    else:
        how = f"{seen.unscaled_calls} times in one step by `{UNSCALING}`"
    yield Finding(
        f"The gradients are divided by the loss scale {how}: every applied gradient is {training.initial_scale:g} "
        "times too small at first.",
        "Delete the division: in Keras 3 `apply` and `apply_gradients` unscale by themselves."
        if is_keras3
        else f"Unscale once: keep one `{UNSCALING}` and delete the rest.",
        training.applied_at,
        model=training.model.id,
        evidence={"exponent": round(seen.median, 3)},
    )


def _divided_by_a_number(training: TrainingFacts, seen: ScaleDependenceFacts) -> Iterator[Finding]:
    """A finding where gradients are divided by a constant loss scale, and then by the wrapper's current one."""
    number = fixed_divisor(training)
    if number is None or seen.grows or not training.model.keras.is_keras3 or not seen.wrappers:
        return
    yield Finding(
        f"The training code divides the gradients by {number:g}, a loss scale, and the LossScaleOptimizer divides them "
        f"by its scale as well: every applied gradient is {number:g} times too small.",
        "Delete the division: in Keras 3 `apply` and `apply_gradients` unscale by themselves.",
        training.applied_at,
        model=training.model.id,
        evidence={"divided_by": number},
    )
