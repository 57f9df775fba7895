"""One LossScaleOptimizer scales the loss, and another one unscales or applies its gradients.

## Why it matters
Each wrapper has its own scale, and the two scales differ from the first overflow of either on. Scaled by 32768
and unscaled by another wrapper's 1024, every update was 32 times too large (5.63 where it should have been
0.176; the same in Keras 3.15, tf_keras 2.21 and TensorFlow 2.10). The wrapper that scales also never learns
that its gradients overflowed. The usual cause is a slip between two similar names, as in a GAN's two steps. The same
happens where one of the two is a number that the program writes out: a loss times 1024 whose gradients
`get_unscaled_gradients` divides by 32768.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
d_optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
g_optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())


def step(generator, loss_of, noise):
    with tf.GradientTape() as tape:
        loss = d_optimizer.scale_loss(loss_of(generator(noise)))
    gradients = tape.gradient(loss, generator.trainable_variables)
    g_optimizer.apply(gradients, generator.trainable_variables)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
d_optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
g_optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())


def step(generator, loss_of, noise):
    with tf.GradientTape() as tape:
        loss = g_optimizer.scale_loss(loss_of(generator(noise)))
    gradients = tape.gradient(loss, generator.trainable_variables)
    g_optimizer.apply(gradients, generator.trainable_variables)
```

## Versions
All.

## Where users met it
tensorflow/tensorflow#48862; keras-team/keras-io's examples with two optimizers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts, Instance, Parameter
from mpdoctor.program.values import Attribute, Value, is_api, options, walk
from mpdoctor.semantics.source.edits.expressions import callee_replaced, unsafe_fix
from mpdoctor.semantics.source.loops.gradients import (
    applied_gradients,
    given_to,
    target,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.scaling import SCALES, holds_gradient, scales, scaling_calls
from mpdoctor.semantics.source.optimizers.wrappers import wrapped
from mpdoctor.semantics.source.programs.attribute_access import receivers
from mpdoctor.semantics.wording import receiver_text, text_at

if TYPE_CHECKING:
    from mpdoctor.semantics.source.loops.unequal_scales import Scale

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
KEEPING = ("functools.lru_cache", "functools.cache")
EXPLAINS = {"MP401": "training", "MP912": "model"}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    steps = list(_scaled_and_divided(facts))
    shared = {id(scaling[0]) for scaling, calls, _ in steps for call in calls if _by_name(facts, scaling[0], call)}
    for scaling, calls, apply in steps:
        call = next((call for call in calls if _is_of_another(facts, call, scaling)), None)
        if call is None:
            is_slip = not facts.keras.is_keras3 and calls and _is_of_another(facts, apply, scaling)
            if is_slip and _has_a_step_of_its_own(facts, apply, steps) and not _applies(facts, scaling[0]):
                yield _applied_by_another(facts, scaling[0], apply)
            continue
        mine, theirs = receiver_text(facts, call), receiver_text(facts, scaling[0])
        if call is not apply and _by_name(facts, scaling[0], apply):
            edit = callee_replaced(facts, call.location, f"{theirs}.{call.method}")
            advice = f"Divide by the scale of the optimizer that applies them: `{theirs}.{call.method}(…)`."
            fix = unsafe_fix(f"Unscale by `{theirs}`", edit)
        else:
            advice, fix = _scaled_by_the_other(facts, scaling, call, is_shared=id(scaling[0]) in shared)
        yield Finding(
            f"The loss was scaled by `{theirs}`, but `{mine}.{call.method}` divides by the scale of `{mine}`: the "
            "gradients are wrong by the ratio of the two scales.",
            advice,
            call.location,
            fix=fix,
        )
    yield from _unequal(facts)


def _unequal(facts: SourceFacts) -> Iterator[Finding]:
    """A loss and gradients of which one is scaled by hand: by a number, or by what a wrapper says of its scale."""
    if not applied_gradients(facts):
        return
    from mpdoctor.semantics.source.loops.unequal_scales import unequal_scales  # of loops alone

    told = set[int]()
    for multiplied, divided in unequal_scales(facts):
        if id(divided.place) in told:
            continue
        told.add(id(divided.place))
        one, other = _in_words(facts, multiplied), _in_words(facts, divided)
        yield Finding(
            f"The loss is multiplied by {one}, and its gradients are divided by {other}: they are wrong by the ratio "
            "of the two.",
            f"Multiply the loss by {other} instead: `{receiver_text(facts, divided.place)}.scale_loss(loss)`."
            if isinstance(divided.place, Call) and divided.place.method in APPLYING
            else f"Divide the gradients by what the loss was multiplied by: {one}.",
            divided.place.location,
        )


def _in_words(facts: SourceFacts, scale: Scale) -> str:
    if scale.wrapper is None:
        return str(scale.number)
    written = next((part for part in walk(scale.place) if isinstance(part, Attribute) and part.name in SCALES), None)
    if written is not None and not (isinstance(scale.place, Call) and scale.place.receiver):
        return f"`{text_at(facts, written.location)}`"
    return f"the scale of `{receiver_text(facts, scale.place)}`" if isinstance(scale.place, Call) else "another scale"


def _has_a_step_of_its_own(facts: SourceFacts, apply: Call, steps: list[tuple[list[Call], list[Call], Call]]) -> bool:
    """Whether the optimizer that applies these gradients applies others as well, of a loss that it scaled itself."""
    return any(_by_name(facts, own[0], apply) for own, _, other in steps if other is not apply)


def _applies(facts: SourceFacts, scaling: Call) -> bool:
    return any(_by_name(facts, scaling, apply) for apply in facts.method_calls(*APPLYING))


def _applied_by_another(facts: SourceFacts, scaling: Call, apply: Call) -> Finding:
    """The finding for gradients that one wrapper of Keras 2 scales and unscales, and that another one, which has its
    own to apply, applies by a slip."""
    mine, theirs = receiver_text(facts, apply), receiver_text(facts, scaling)
    edit = callee_replaced(facts, apply.location, f"{theirs}.{apply.method}")
    return Finding(
        f"The loss was scaled by `{theirs}`, but `{mine}` applies the gradients, and `{theirs}` applies none: it never "
        "learns that they overflowed, and keeps its scale.",
        f"Apply them by the optimizer that scaled the loss: `{theirs}.{apply.method}(…)`.",
        apply.location,
        fix=unsafe_fix(f"Apply them by `{theirs}`", edit),
    )


def _scaled_by_the_other(
    facts: SourceFacts, scaling: list[Call], call: Call, *, is_shared: bool
) -> tuple[str, Fix | None]:
    """The advice to scale the loss by the optimizer that divides the gradients, and the edit, where the scaled loss is
    not needed for the other one as well (`is_shared`)."""
    mine = receiver_text(facts, call)
    scaled = f"`{mine}.{scaling[0].method}(loss)`"
    if is_shared:
        return (
            f"Scale the loss a second time inside the tape, {scaled}, and take the gradients for `{mine}` from that.",
            None,
        )
    advice = f"Scale each loss by the optimizer that applies its gradients: {scaled}."
    return advice, _fix(facts, scaling, call, mine)


def _scaled_and_divided(facts: SourceFacts) -> Iterator[tuple[list[Call], list[Call], Call]]:
    """For each gradient that is applied: the calls that scaled its loss, those that divide it by a loss scale, and the
    call that applies it."""
    for apply, gradient in applied_gradients(facts):
        scaling = list(scaling_calls(target(gradient)))
        if scaling and all(scales(facts, call) for call in scaling):
            yield scaling, list(_dividing(facts, apply, gradient)), apply


def _by_name(facts: SourceFacts, scaling: Call, call: Call) -> bool:
    """Whether an optimizer of the same name scales and divides."""
    return receiver_text(facts, scaling) == receiver_text(facts, call)


def _is_of_another(facts: SourceFacts, call: Call, scaling: list[Call]) -> bool:
    return not (_by_name(facts, scaling[0], call) or call.context.guarded) and _is_another(facts, call, scaling)


def _fix(facts: SourceFacts, scaling: list[Call], call: Call, optimizer: str) -> Fix | None:
    if len(scaling) != 1 or scaling[0].context.function is not call.context.function:
        return None
    edit = callee_replaced(facts, scaling[0].location, f"{optimizer}.{scaling[0].method}")
    return unsafe_fix(f"Scale by `{optimizer}`", edit)


def _dividing(facts: SourceFacts, apply: Call, gradient: Call) -> Iterator[Call]:
    """The calls that divide this gradient by a loss scale; in Keras 2 applying it is not one of them."""
    for part in until_gradients(given_to(apply)):
        if isinstance(part, Call) and unscales(part) and holds_gradient(part, gradient):
            yield part
    if facts.keras.is_keras3:
        yield apply


def _is_another(facts: SourceFacts, call: Call, scaling: list[Call]) -> bool:
    """Whether a call is certainly made on another wrapper than the one that scaled the loss."""
    dividing = receivers(facts, call)
    scaled_with = [option for scaled in scaling for option in options(scaled.receiver)]
    if not dividing or not scaled_with or any(_may_be_one(a, b) for a in dividing for b in scaled_with):
        return False
    return all(
        wrapped(facts, optimizer, call, certain=False) or isinstance(optimizer, (Parameter, Attribute))
        for optimizer in dividing
    )


def _may_be_one(one: Value, other: Value) -> bool:
    """Whether two values may be one wrapper. They are two where two lines make them, and as two parameters of one
    function or two attributes of one object."""
    if one is other:
        return True
    if isinstance(one, Call) and isinstance(other, Call):
        apart = _are_of_one_list(one, other) or _are_of_two_calls(one, other)
        if one.location == other.location and not apart:
            return True
        return not (one.method[:1].isupper() and other.method[:1].isupper())
    if isinstance(one, Parameter) and isinstance(other, Parameter):
        return one.name == other.name or one.function is not other.function
    if isinstance(one, Attribute) and isinstance(other, Attribute):
        return not _are_two_optimizers(one, other)
    return True


def _are_of_one_list(one: Call, other: Call) -> bool:
    """Whether a comprehension made both: the same line in the same run made them one after the other."""
    here, there = one.context, other.context
    arms = [[(branch.statement, branch.taken) for branch in made.branches] for made in (here, there)]
    return arms[0] == arms[1] and (here.run, here.callers, here.loops) == (there.run, there.callers, there.loops)


def _are_of_two_calls(one: Call, other: Call) -> bool:
    """Whether one function of the program made both, called in two places during the same run of another. One that
    keeps its results may have given the same wrapper twice."""
    here, there = one.context.callers, other.context.callers
    function = one.context.function
    if function is not None and any(is_api(decorator, *KEEPING) for decorator in _made_by(function)):
        return False
    return one.context.run == other.context.run and here[:-1] == there[:-1] and here[-1:] != there[-1:]


def _made_by(function: FunctionFacts) -> list[Value]:
    """What a function's decorators are, without what they are called with."""
    return [decorator.callee if isinstance(decorator, Call) else decorator for decorator in function.decorators]


def _are_two_optimizers(one: Attribute, other: Attribute) -> bool:
    """Whether they are two attributes of one object, at least one of which is called an optimizer."""
    same_holder = one.of is other.of or (isinstance(one.of, Instance) and isinstance(other.of, Instance))
    return one.name != other.name and same_holder and "optimizer" in one.name + other.name
