"""A custom training step scales the loss and applies the gradients without unscaling them.

## Why it matters
The updates are 32768 times too large: with SGD(0.1) a weight moved by 14614 where it should have moved by 0.446
(tf_keras 2.21, the same in TensorFlow 2.4 to 2.15). Adam hides this, because it divides by the gradients' own
size; clipping, weight decay and logged norms are wrong all the same. Keras 2's `minimize` scales and unscales
by itself, so a loss that was scaled before has the same effect (a weight moved by 5765 instead of 0.176). In
Keras 3 the same loop is right, because `apply` and `apply_gradients` unscale.

If you multiply the loss by a number of your own, `loss * 1024`, your code has to divide the gradients by it, in
every Keras, and where `weight.assign_sub(rate * gradient)` changes the weights as well. Without that, SGD(0.01) moved
a weight by 4.66 instead of 0.00455 (Keras 3.15, tf_keras 2.21, TensorFlow 2.10 and 2.4), and the loss was inf or NaN a
few steps later. This is not reported for Adam, nor where gradients are clipped or the learning rate is small enough.

## Flagged
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.layers.Dense(1, dtype="float32")])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))


def step(x, y):
    with tf.GradientTape() as tape:
        scaled_loss = optimizer.get_scaled_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = tape.gradient(scaled_loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Fixed
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.layers.Dense(1, dtype="float32")])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))


def step(x, y):
    with tf.GradientTape() as tape:
        scaled_loss = optimizer.get_scaled_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled_loss, model.trainable_variables))
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Versions
`get_scaled_loss` in Keras 2: TensorFlow 2.4 to 2.15 and tf_keras. A scale by hand: all.

## Where users met it
keras-team/keras#16552, intel/ipex-llm#7020.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from mpdoctor.facts.causes.scale_dependence import ScaleDependenceFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.live.fixed_scales import fixed_divisor, fixed_factor
from mpdoctor.semantics.source.edits.expressions import put_around, unsafe_fix
from mpdoctor.semantics.source.edits.statements import passed_on
from mpdoctor.semantics.source.loops.applied_scaled import (
    applied_inside,
    applied_scaled,
    scaled_twice,
    unscaled_in_one_arm,
)
from mpdoctor.semantics.source.loops.clipping import limits
from mpdoctor.semantics.source.loops.gradients import (
    applied_gradients,
    given_to,
    target,
    until_gradients,
)
from mpdoctor.semantics.source.loops.hand_made_scales import never_divided
from mpdoctor.semantics.source.loops.kept_gradients import sums_applied_scaled
from mpdoctor.semantics.source.loops.loss_scale_signs import is_scaled_by
from mpdoctor.semantics.source.optimizers.wrappers import starting_scale_in_words, wrapped
from mpdoctor.semantics.source.texts.written import argument_at, expression_written
from mpdoctor.semantics.wording import place_of, receiver_text, text_at

SEVERITY = Severity.ERROR
NEVER_RAISES = True
FIXES = ("unsafe",)
EXPLAINS = {"MP902": "model", "MP903": "line", "MP905": "line", "MP907": "line", "MP911": "line", "MP912": "model"}
CONFIRMED_LIVE = True
CAUSES_DIVERGENCE = True
UNSCALING = (".loss_scale", "unscale")  # in the text of a file that may unscale gradients


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for apply, factor, setting in never_divided(facts):
        by = f"`{setting}`, which is {factor} by default" if setting else str(factor)
        yield Finding(
            f"The loss is multiplied by {by}, but its gradients are never divided by it: every applied gradient "
            f"is {factor} times too large.",
            f"Divide them first: `gradients = [g / {setting or factor} for g in gradients]`. Or leave the factor out "
            "and let a LossScaleOptimizer scale and unscale.",
            apply.location,
            fix=_divided(facts, apply, setting or str(factor)),
        )
    for scaling, apply in scaled_twice(facts):
        yield Finding(
            "This loss is scaled already, and its gradients are unscaled only once: every applied gradient is "
            f"{starting_scale_in_words(apply.receiver)} times too large.",
            f"Scale it once: leave this `{scaling.method}` out, or the one before it.",
            scaling.location,
            fix=_scaled_once(facts, scaling),
        )
    if facts.keras.is_keras3:
        yield from _never_divided_by_hand(facts)
    else:
        yield from _never_unscaled(facts)


def _never_divided_by_hand(facts: SourceFacts) -> Iterator[Finding]:
    for apply, wrapper in applied_inside(facts):
        yield Finding(
            "These gradients come from the scaled loss and go to the optimizer inside, which does not unscale: "
            + _consequence(wrapper, until_gradients(given_to(apply))),
            "Apply them through the LossScaleOptimizer, which unscales, or divide them by its `dynamic_scale` first.",
            apply.location,
        )


def _never_unscaled(facts: SourceFacts) -> Iterator[Finding]:
    for apply, gradient in applied_scaled(facts):
        yield Finding(
            "These gradients come from the scaled loss and are applied without unscaling: "
            + _consequence(apply.receiver, until_gradients(given_to(apply))),
            _how_to_unscale(facts, apply, gradient),
            apply.location,
            fix=_unscaled(facts, apply, gradient),
        )
    for apply, unscaling in unscaled_in_one_arm(facts):
        where = place_of(facts, unscaling.location, apply.location)
        yield Finding(
            f"The loss is always scaled, but its gradients are unscaled only where an `if` is taken ({where}): where "
            f"it is not, every applied gradient is {starting_scale_in_words(apply.receiver)} times too large.",
            "Unscale the gradients where the tape gives them, before the `if`.",
            apply.location,
        )
    for apply, gradients in sums_applied_scaled(facts).items():
        of = receiver_text(facts, apply)
        yield Finding(
            "These variables hold gradients of the scaled loss, and nothing in this file unscales them: "
            f"every applied gradient is {starting_scale_in_words(apply.receiver)} times too large.",
            f"Keep unscaled ones in them: `gradients = {of}.get_unscaled_gradients(tape.gradient(scaled_loss, …))`.",
            apply.location,
            fix=_unscaled_by_its_scaler(facts, gradients),
        )
    for call in facts.method_calls("minimize"):
        if call.context.guarded or call.receiver is None or not wrapped(facts, call.receiver, call):
            continue
        if any(is_scaled_by(loss, "get_scaled_loss") for loss in _losses(facts, call)):
            yield Finding(
                "`minimize` scales the loss itself. This loss is already scaled, and unscaled only once: every applied "
                f"gradient is {starting_scale_in_words(call.receiver)} times too large.",
                f"Pass the unscaled loss: `{receiver_text(facts, call)}.minimize(loss, …)`.",
                call.location,
                fix=_loss_as_it_is(facts, call),
            )


def _consequence(wrapper: Value | None, way: Iterable[Value]) -> str:
    clip = next((part for part in way if isinstance(part, Call) and limits(part)), None)
    if clip is not None:
        return f"`{clip.method}` cuts each of them down to its limit, however small the gradient is."
    return f"every applied gradient is {starting_scale_in_words(wrapper)} times too large."


def _how_to_unscale(facts: SourceFacts, apply: Call, gradient: Call) -> str:
    """The remedy in the program's own names: where the gradients are computed, before anything clips them, or where
    they are applied if another function does that."""
    unscale = f"{receiver_text(facts, apply)}.get_unscaled_gradients"
    computed = text_at(facts, gradient.location)
    if computed and apply.context.function is gradient.context.function:
        where = place_of(facts, gradient.location, apply.location)
        return f"Unscale them where they are computed ({where}): `{unscale}({computed})`."
    applied = _gradients_applied(facts, apply)
    name = "gradients" if applied is None else text_at(facts, applied) or "gradients"
    return (
        f"Unscale them first: `{name} = {unscale}({name})`."
        if name.isidentifier()
        else f"Unscale them first: `{unscale}({name})`."
    )


def _unscaled(facts: SourceFacts, apply: Call, gradient: Call) -> Fix | None:
    """The edit that unscales the gradients after the tape, or where they are applied if another function does that."""
    is_here = apply.context.function is gradient.context.function
    place = gradient.location if is_here else _gradients_applied(facts, apply)
    before = f"{receiver_text(facts, apply)}.get_unscaled_gradients("
    return unsafe_fix("Unscale the gradients", put_around(facts, place, before, ")") if place is not None else None)


def _gradients_applied(facts: SourceFacts, apply: Call) -> Location | None:
    """`gradients` in `apply_gradients(zip(gradients, …))`; None for an argument that is built in another way."""
    pairs = argument_at(facts, apply.location, 0, "grads_and_vars")
    written = expression_written(facts, pairs) if pairs is not None else None
    is_zip = isinstance(written, ast.Call) and ast.unparse(written.func) == "zip"
    return argument_at(facts, pairs, 0) if is_zip and pairs is not None else None


def _divided(facts: SourceFacts, apply: Call, factor: str) -> Fix | None:
    gradient = next((gradient for call, gradient in applied_gradients(facts) if call is apply), None)
    function = apply.context.function
    if gradient is None or function is not gradient.context.function:
        return None
    losses = options(target(gradient))
    is_here = all(isinstance(loss, (Call, Operation)) and loss.context.function is function for loss in losses)
    if not factor.isdigit() and not is_here:  # a name, which may be another one here
        return None
    around = put_around(facts, gradient.location, "[gradient / " + f"{factor} for gradient in ", "]")
    return unsafe_fix(f"Divide the gradients by {factor}", around)


def _scaled_once(facts: SourceFacts, scaling: Call) -> Fix | None:
    return unsafe_fix("Scale the loss once", passed_on(facts, scaling.location, 0, "loss"))


def _loss_as_it_is(facts: SourceFacts, minimize: Call) -> Fix | None:
    scaled = [loss for loss in _losses(facts, minimize) if isinstance(loss, Call) and loss.method == "get_scaled_loss"]
    edit = passed_on(facts, scaled[0].location, 0, "loss") if len(scaled) == 1 else None
    return unsafe_fix("Pass the unscaled loss", edit)


def _unscaled_by_its_scaler(facts: SourceFacts, gradients: list[Call]) -> Fix | None:
    """The edit that unscales what the one tape gives, by what scales its loss in the same function."""
    function = gradients[0].context.function
    scaling = [call for call in facts.method_calls("get_scaled_loss") if call.context.function is function]
    if len({gradient.location for gradient in gradients}) != 1 or len(scaling) != 1:
        return None
    unscale = f"{receiver_text(facts, scaling[0])}.get_unscaled_gradients"
    return unsafe_fix("Unscale the gradients", put_around(facts, gradients[0].location, f"{unscale}(", ")"))


def _losses(facts: SourceFacts, minimize: Call) -> Iterator[Value]:
    """The loss passed to minimize, or the result of the function passed to it."""
    for option in options(minimize.argument(0, "loss")):
        if isinstance(option, Defined) and isinstance(option.of, FunctionFacts):
            yield from (event.value for event in facts.returns_of(option.of))
        else:
            yield option


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    seen = training.scale_dependence
    if training.model.keras.is_keras3 or seen is None or seen.unscaled_calls or seen.unscaled_called:
        return
    if not seen.grows or not seen.is_scaled or fixed_divisor(training) is not None:  # MP912
        yield from _multiplied_by_a_number(training, seen)
        return
    times = training.initial_scale or seen.high
    yield Finding(
        "The gradients of a scaled loss are applied without unscaling: every applied gradient is "
        f"{times:g} times too large at first.",
        "Unscale them before they are applied: `gradients = optimizer.get_unscaled_gradients(gradients)`.",
        training.applied_at,
        model=training.model.id,
        evidence={"exponent": round(seen.median, 3)},
    )


def _multiplied_by_a_number(training: TrainingFacts, seen: ScaleDependenceFacts) -> Iterator[Finding]:
    """A finding where the loss is multiplied by a constant loss scale, and nothing divides the gradients."""
    number = fixed_factor(training)
    if number is None or seen.is_scaled or seen.grows or seen.shrinks or seen.on_the_way or seen.divided_by is not None:
        return
    yield Finding(
        f"The training code multiplies the loss by {number:g}, a loss scale, and applies its gradients without "
        f"dividing them: every applied gradient is {number:g} times too large.",
        "Scale the loss with `optimizer.get_scaled_loss(loss)`, and unscale its gradients before they are applied: "
        "`gradients = optimizer.get_unscaled_gradients(gradients)`.",
        training.applied_at,
        model=training.model.id,
        evidence={"multiplied_by": number},
    )
