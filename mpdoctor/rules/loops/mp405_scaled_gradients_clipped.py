"""Gradients are clipped while they are still multiplied by the loss scale.

## Why it matters
Scaled gradients are 32768 times too large, so a limit chosen for unscaled ones cuts down nearly all of them,
and unscaling then divides the rest: with SGD(0.1) and clip_by_global_norm(…, 1.0) a weight moved by 1.6e-06
where it should have moved by 0.053 (the same in Keras 3.15, tf_keras 2.21 and TensorFlow 2.10). In Keras 2
unscale first, then clip. In Keras 3 unscaling and applying are one call: give the limit to the optimizer
inside, which clips after unscaling. Clipping that is written out, `g / tf.maximum(1.0, norm / limit)`, is the same.

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
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    optimizer.apply(gradients, model.trainable_variables)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1, global_clipnorm=1.0))


def step(x, y):
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
```

## Versions
All. In Keras 2: `get_unscaled_gradients` first, then the clipping.

## Where users met it
tensorflow/tensorflow#36001; tensorflow/models does it in the right order.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_names import CLIPPING
from mpdoctor.knowledge.wrapper_api import SCALING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Value, known, walk
from mpdoctor.semantics.source.edits.expressions import unsafe_fix, with_keyword
from mpdoctor.semantics.source.edits.loops.clipped import limit_at, with_scaled_limits, without_clipping
from mpdoctor.semantics.source.edits.loops.moved_clips import clipped_behind_branch
from mpdoctor.semantics.source.edits.loops.scaled_losses import unscaled_at_tape
from mpdoctor.semantics.source.edits.statements import statement_at
from mpdoctor.semantics.source.loops.clipping import argument_for, cuts_by_norm, cuts_each, is_bound, limits
from mpdoctor.semantics.source.loops.gradients import (
    UNSCALING,
    applied_gradients,
    given_to,
    is_gradient_call,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.kept_gradients import kept_gradients
from mpdoctor.semantics.source.loops.scaling import (
    applied_by_its_scaler,
    divided_by_scale,
    holds_gradient,
    is_of_scaled_loss,
    with_mapped,
    wrapper_of_scale,
)
from mpdoctor.semantics.source.optimizers.wrappers import starting_scale_in_words, wrapped
from mpdoctor.semantics.source.programs.branches import may_not_run
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.ERROR
NEVER_RAISES = True
FIXES = ("unsafe",)
STILL = "that are still multiplied by the loss scale"
EXPLAINS = {"MP912": "model"}
CONFIRMED_LIVE = True


# Keras' optimizers take one of them.


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    yield from _clipped_before_division(facts)
    clipped = _clipped_before_apply(facts) if facts.keras.is_keras3 else _clipped_before_unscaling(facts)
    for clip, unscaling, gradient in clipped:
        scale = starting_scale_in_words(unscaling.receiver)
        if isinstance(clip, Operation) or not limits(clip):
            yield _cut_by_hand(facts, clip, unscaling, scale)
            continue
        problem = f"`{clip.method}` clips gradients {STILL}, so its limit is {scale} times too low"
        if facts.keras.is_keras3:
            fix = _given_to_inner(facts, clip, unscaling)
            scaled = with_scaled_limits(facts, clip, unscaling) if fix is None else None
            setting = f"`{argument_for(clip)}={_limit(facts, clip)}`"
            statement = statement_at(facts, clip.location)
            returns = statement is not None and statement.text.startswith("return")
            instead = "return the gradients as they are" if returns else "delete this line"
            inside = f"to the optimizer inside, which clips after unscaling ({setting}), and {instead}."
            yield Finding(
                f"{problem}; `{unscaling.method}` then divides the clipped gradients by the scale.",
                f"Scale the limit as well: `{scaled[0].text}`. Or give it {inside}"
                if scaled
                else f"Give the limit {inside}",
                clip.location,
                fix=fix or unsafe_fix("Scale the limit like the gradients", scaled),
            )
        else:
            yield Finding(
                f"{problem}: they are unscaled only afterwards.",
                f"Move this line after `{UNSCALING}`.",
                clip.location,
                fix=_unscaled_first(facts, clip, unscaling, gradient),
            )


def _clipped_before_division(facts: SourceFacts) -> Iterator[Finding]:
    """Gradients that are clipped before the program itself divides them by the loss scale."""
    for apply, gradient in applied_gradients(facts):
        if facts.keras.is_keras3 and applied_by_its_scaler(facts, apply, gradient):
            continue
        parts = list(until_gradients(given_to(apply)))
        divisions = [part for part in parts if divided_by_scale(part, ())]
        for clip in _clips_scaled(facts, given_to(apply), gradient) if divisions else ():
            behind = [part for part in divisions if any(inner is clip for inner in until_gradients(part))]
            if behind and isinstance(clip, Call) and limits(clip):
                yield Finding(
                    f"`{clip.method}` clips gradients {STILL}, so its limit is "
                    f"{starting_scale_in_words(wrapper_of_scale(behind[0]))} times too low: they are divided by it "
                    "only afterwards.",
                    "Move this line after the division.",
                    clip.location,
                )


def _cut_by_hand(facts: SourceFacts, cut: Call | Operation, unscaling: Call, scale: str) -> Finding:
    """The finding for clipping that the program does by arithmetic of its own."""
    still = f"while they are {STILL.removeprefix('that are ')}"
    if isinstance(cut, Call) and is_bound(cut):
        problem = f"`{cut.method}` clips gradients {still}, so its limit is {scale} times too low"
        argument, otherwise = "clipvalue", "multiply the limits"
    else:
        problem = f"These gradients are clipped by their norm {still}, which makes that norm {scale} times too large"
        argument, otherwise = "global_clipnorm", "divide the norm"
    if not facts.keras.is_keras3:
        return Finding(
            f"{problem}: they are unscaled only afterwards.", f"Move this after `{UNSCALING}`.", cut.location
        )
    return Finding(
        f"{problem}; `{unscaling.method}` then divides what is left by the scale.",
        f"Leave it to the optimizer inside, which clips after unscaling (`{argument}=…`), or {otherwise} by "
        "the same optimizer's `scale_loss(1.0)`.",
        cut.location,
    )


def _given_to_inner(facts: SourceFacts, clip: Call, apply: Call) -> Fix | None:
    """The edits that leave the clipping to the optimizer inside, where that is one of the library's that has no limit
    yet."""
    inside = wrapped(facts, apply.receiver, apply) if apply.receiver is not None else ()
    given = [known(limit) for limit in limits(clip) or ()]
    numbers = [number for number in given if isinstance(number, (int, float))]
    if len(inside) != 1 or len(numbers) < len(given) or len({abs(number) for number in numbers}) != 1:
        return None
    (inner,) = inside
    if not isinstance(inner, Call) or not isinstance(inner.callee, Api) or any(map(inner.keyword, CLIPPING)):
        return None
    text = limit_at(facts, clip, inner)
    limit = with_keyword(facts, inner.location, argument_for(clip), text) if text is not None else None
    return unsafe_fix("Let the optimizer inside clip", limit, without_clipping(facts, clip.location))


def _unscaled_first(facts: SourceFacts, clip: Call, unscaling: Call, gradient: Call) -> Fix | None:
    edits = unscaled_at_tape(facts, unscaling, gradient) or clipped_behind_branch(facts, clip.location)
    return unsafe_fix("Unscale before clipping", edits)


def _clipped_before_apply(facts: SourceFacts) -> Iterator[tuple[Call | Operation, Call, Call]]:
    """Each call that clips scaled gradients, the apply call, which unscales in Keras 3, and the tape's `gradient`
    call."""
    for apply, gradient in applied_gradients(facts):
        if applied_by_its_scaler(facts, apply, gradient):
            yield from ((clip, apply, gradient) for clip in _clips_scaled(facts, given_to(apply), gradient))
    for apply, gradient, before, behind in kept_gradients(facts):
        if applied_by_its_scaler(facts, apply, gradient):
            clips = _clips_among(facts, (*before, *behind), gradient)
            yield from ((clip, apply, gradient) for clip in clips)


def _clipped_before_unscaling(facts: SourceFacts) -> Iterator[tuple[Call | Operation, Call, Call]]:
    """Each call that clips scaled gradients, the later `get_unscaled_gradients`, and the tape's `gradient` call."""
    for unscaling in facts.method_calls(UNSCALING):
        given = unscaling.argument(0)
        for value in until_gradients(given) if not may_not_run(facts, unscaling.context) else ():
            if isinstance(value, Call) and is_gradient_call(value):
                yield from ((clip, unscaling, value) for clip in _clips_scaled(facts, given, value))
    for _, gradient, before, behind in kept_gradients(facts):
        for unscaling in filter(unscales, behind):
            ways = (*before, *(part for part in until_gradients(unscaling.argument(0)) if part in behind))
            yield from ((clip, unscaling, gradient) for clip in _clips_among(facts, ways, gradient))


def _clips_among(facts: SourceFacts, ways: tuple[Value, ...], gradient: Call) -> Iterator[Call]:
    """The calls that clip gradients on their way through variables, while those hold scaled ones."""
    if not any(unscales(part) or divided_by_scale(part) for part in ways) and is_of_scaled_loss(facts, gradient):
        for part in ways:
            if isinstance(part, Call) and not may_not_run(facts, part.context) and _clips_without_scale(part):
                yield part


def _clips_scaled(facts: SourceFacts, value: Value | None, gradient: Call) -> Iterator[Call | Operation]:
    """The calls that clip these gradients before they are unscaled, at a limit that does not depend on the scale."""
    if not is_of_scaled_loss(facts, gradient):
        return
    for part in until_gradients(value, unscales):
        if not holds_gradient(part, gradient, through_unscaling=False) or _may_be_unscaled(part):
            continue
        for cut in with_mapped(facts, part):
            if not isinstance(cut, (Call, Operation)) or may_not_run(facts, cut.context):
                continue
            if not is_of_scaled_loss(facts, gradient, cut.context):
                continue
            if _clips_without_scale(cut) or (_cuts(cut, gradient) and not _is_rescaled(value)):
                yield cut


def _may_be_unscaled(value: Value) -> bool:
    """Whether the gradients are unscaled on another path to the same call."""
    return any(unscales(part) for part in until_gradients(value))


def _cuts(value: Value, gradient: Call) -> bool:
    return cuts_by_norm(value, gradient) or cuts_each(value, gradient)


def _is_rescaled(value: Value | None) -> bool:
    """Whether a loss scale is used on the way, as in `g / norm * optimizer.dynamic_scale`."""
    return any(
        (isinstance(part, Attribute) and "scale" in part.name) or (isinstance(part, Call) and part.method in SCALING)
        for part in until_gradients(value)
    )


def _clips_without_scale(call: Call | Operation) -> bool:
    at = limits(call)
    return bool(at) and not any(map(_knows_scale, at or ()))


def _knows_scale(limit: Value) -> bool:
    return any(isinstance(value, Attribute) and "scale" in value.name for value in walk(limit))


def _limit(facts: SourceFacts, clip: Call) -> str:
    at = limits(clip)
    return (text_at(facts, at[-1].location) if at else "") or "…"


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    seen = training.scale_dependence
    if seen is None or not seen.shrinks or not seen.is_scaled or seen.wrappers > 1 or seen.unscaled_calls > 1:
        return
    if seen.on_the_way != "changed":
        return
    yield Finding(
        "The gradients are clipped, or divided by their norm, while they are still multiplied by the loss scale, and "
        f"unscaled afterwards. For the same batch, the gradients at the loss scales {seen.low:g} and {seen.high:g} "
        f"differ by a factor of {(seen.high / seen.low) ** abs(seen.median):.3g}, and should be equal.",
        "Give the limit to the optimizer inside, which clips after unscaling: "
        "`LossScaleOptimizer(Adam(global_clipnorm=1.0))`. Multiply what is divided by its norm by "
        "`optimizer.scale_loss(1.0)`."
        if training.model.keras.is_keras3
        else f"Clip after `{UNSCALING}`, and divide there, not before.",
        training.applied_at,
        model=training.model.id,
        evidence={"exponent": round(seen.median, 3), "scales": [seen.low, seen.high]},
    )
