"""A custom training step applies gradients through a LossScaleOptimizer without scaling the loss.

## Why it matters
In Keras 3 `apply` and `apply_gradients` divide by the loss scale whether or not the loss was multiplied by it.
Without `scale_loss` every applied gradient is 32768 times too small: with SGD(0.1) a weight moved by 1.4e-05
where it should have moved by 0.446. Adam hides this until its epsilon dominates.

In Keras 2 nothing is divided and nothing is scaled: gradients below 3e-08 become zero in float16, which the
wrapper was meant to prevent. Where `get_unscaled_gradients` is called all the same, a weight moved by 2.4e-05
instead of 0.8 (SGD(0.1); TensorFlow 2.4, 2.10 and 2.15, tf_keras 2.21).

Under mixed_float16 compile() wraps your optimizer, so a custom `train_step` has to scale the loss too.

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
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
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
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Versions
All. In Keras 2 the calls are `get_scaled_loss` inside the tape and `get_unscaled_gradients` before applying. In
Keras 3 an optimizer with its own `loss_scale_factor` divides in the same way. The same holds for a part of the
loss: `scaled + sum(model.losses)` moved a regularized weight by 3e-05 instead of 1 (TensorFlow 2.10 and 2.21).
`stateless_apply` divides the gradients that JAX has computed as well. Under mixed_bfloat16, and where no layer
computes in 16 bits, nothing becomes zero: in Keras 2 a loop that neither scales nor unscales is right there, and not
reported.

Some packages have a `train_step` that never scales: `Model` of tensorflow_recommenders 0.7, `ModelWithCRFLoss` of
tf2crf 0.1. Both mixed_bfloat16 and a class with a `train_step` of its own trained the latter (TensorFlow 2.15).

## Where users met it
keras-team/keras#19244, keras-team/keras#19479, keras-team/keras#20894, keras-team/keras-io#524.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.written_numbers import capitalized
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.live.fixed_scales import fixed_factor
from mpdoctor.semantics.source.edits.expressions import put_around, unsafe_fix
from mpdoctor.semantics.source.edits.loops.scaled_losses import loss_scaled
from mpdoctor.semantics.source.loops.float16_layers import nothing_is_float16
from mpdoctor.semantics.source.loops.functional_gradients import (
    STATELESS_APPLY,
    stateless_steps,
    steps_behind_backward,
)
from mpdoctor.semantics.source.loops.gradient_sums import gradients_kept_until
from mpdoctor.semantics.source.loops.gradients import (
    applied_gradients,
    calls_on_the_way,
    given_to,
    is_taken_in_the_other_arm,
    is_without_tape,
    optimizer_scales,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.idle_wrappers import idle_wrappers
from mpdoctor.semantics.source.loops.loss_scale_signs import may_be_scaled_in
from mpdoctor.semantics.source.loops.resized_gradients import divided_by_its_scale, unscaled_on_the_way
from mpdoctor.semantics.source.loops.scaled_losses import is_given_optimizer, may_be_scaled
from mpdoctor.semantics.source.loops.scaling import divided_by_scale, unscaled_losses_of_layers, wrapper_of_scale
from mpdoctor.semantics.source.optimizers.wrappers import starting_scale_in_words, wrapped
from mpdoctor.semantics.source.programs.branches import may_not_run
from mpdoctor.semantics.source.texts.written import argument_at, text_of
from mpdoctor.semantics.wording import receiver_text

SEVERITY = Severity.ERROR
NEVER_RAISES = True
FIXES = ("unsafe",)
EXPLAINS = {"MP906": "model", "MP908": "model", "MP912": "model"}
CONFIRMED_LIVE = True
DIVIDED = "The loss was never scaled, but the gradients are divided by the loss scale: every applied gradient is "


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    yield from _findings_without_tape(facts)
    yield from _findings_in_variables(facts)
    for apply, gradient in applied_gradients(facts):
        how = optimizer_scales(facts, apply)
        wrapper = _wrapper_divided_by(facts, apply, gradient) if how is None else None
        if wrapper is not None:
            small = f"{starting_scale_in_words(wrapper)} times too small at first."
            yield Finding(DIVIDED + small, _help(facts, apply, gradient, unscaled=True), apply.location)
        if how is not None:
            yield from _findings_of_summands(facts, apply, gradient)
        if how is None or may_be_scaled(facts, apply, gradient):
            continue
        is_divided = divided_by_its_scale(facts, apply, gradient)
        is_resized = not is_divided and unscaled_on_the_way(facts, apply, gradient)
        if is_resized or is_taken_in_the_other_arm(apply, gradient):
            continue  # the gradients may have been multiplied by hand
        unscaled = is_divided or calls_on_the_way(apply, "get_unscaled_gradients")
        if not facts.keras.is_keras3 and not unscaled and _loses_no_gradient(facts, apply):
            continue  # nothing is divided, and no gradient is lost (MP309)
        fix = _fix(facts, apply, gradient, unscaled)
        yield Finding(
            _message(facts, apply, how, unscaled), _help(facts, apply, gradient, unscaled), apply.location, fix=fix
        )


def _wrapper_divided_by(facts: SourceFacts, apply: Call, gradient: Call) -> Value | None:
    """The LossScaleOptimizer by whose scale the program divides gradients of a loss that was never scaled, before
    another optimizer applies them."""
    for part in until_gradients(given_to(apply)):
        wrapper = wrapper_of_scale(part) if divided_by_scale(part, ()) else None
        if wrapper is not None and wrapped(facts, wrapper, apply):
            is_scaled = may_be_scaled(facts, apply, gradient)
            return None if is_scaled or is_taken_in_the_other_arm(apply, gradient) else wrapper
    return None


def _findings_in_variables(facts: SourceFacts) -> Iterator[Finding]:
    """Gradients of a loss that was never scaled, added up in variables over several steps and applied from there."""
    applied = {id(apply) for apply, _ in applied_gradients(facts)}
    for apply in facts.method_calls(*APPLYING):
        if id(apply) in applied or may_not_run(facts, apply.context) or optimizer_scales(facts, apply) is None:
            continue
        for kept, gradient in gradients_kept_until(facts, apply):
            way = (*until_gradients(given_to(apply)), *until_gradients(kept.argument(0)))
            if any(isinstance(part, Operation) and part.operator == "*" for part in way):
                continue  # they may be scaled by hand
            unscaled = any(unscales(part) for part in way)
            if not unscaled and not facts.keras.is_keras3:
                continue  # nothing is divided
            if may_be_scaled(facts, apply, gradient):
                continue
            help, fix = _help(facts, apply, gradient, unscaled), _fix(facts, apply, gradient, unscaled)
            yield Finding(_message(facts, apply, "wrapper", unscaled), help, apply.location, fix=fix)
            break


def _loses_no_gradient(facts: SourceFacts, apply: Call) -> bool:
    """Whether nothing here computes in float16, where gradients would become zero."""
    idle = [wrapper for wrapper, _ in idle_wrappers(facts)]
    applied_with = options(apply.receiver)
    idles = bool(idle) and all(any(option is wrapper for wrapper in idle) for option in applied_with)
    return idles or nothing_is_float16(facts)


def _findings_without_tape(facts: SourceFacts) -> Iterator[Finding]:
    """Gradients that JAX or PyTorch computed from a loss that was never scaled."""
    for apply, losses in (*stateless_steps(facts), *steps_behind_backward(facts)):
        how = optimizer_scales(facts, apply)
        scaled = (may_be_scaled_in(facts, loss) or is_given_optimizer(apply, loss) for loss in losses)
        if how is not None and not any(scaled):
            of = receiver_text(facts, apply)
            yield Finding(
                _message(facts, apply, how, unscaled=False),
                f"Return `{of}.scale_loss(loss)` from the function that JAX differentiates, and the unscaled "
                "loss with it, using `has_aux=True`."
                if apply.method == STATELESS_APPLY
                else f"Call `backward()` on the scaled loss: `{of}.scale_loss(loss).backward()`.",
                apply.location,
            )


def _findings_of_summands(facts: SourceFacts, apply: Call, gradient: Call) -> Iterator[Finding]:
    """Layers' losses that are added to an already scaled loss."""
    if not facts.keras.is_keras3 and not calls_on_the_way(apply, "get_unscaled_gradients"):
        return  # MP402
    for term in unscaled_losses_of_layers(facts, gradient):
        text = text_of(facts, term.location) or "The layers' loss"
        of, method = receiver_text(facts, apply), "scale_loss" if facts.keras.is_keras3 else "get_scaled_loss"
        yield Finding(
            f"`{text}` is added unscaled to the scaled loss, and its gradients are divided by the loss scale with the "
            f"others: this part counts {starting_scale_in_words(apply.receiver)} times too little at first.",
            f"Add first and scale the sum, or scale this part too: `{of}.{method}({text})`.",
            term.location,
            fix=unsafe_fix("Scale this part, too", put_around(facts, term.location, f"{of}.{method}(", ")")),
        )


def _fix(facts: SourceFacts, apply: Call, gradient: Call, unscaled: bool) -> Fix | None:
    if gradient.argument(2, "output_gradients") is not None:
        return None
    title = "Scale the loss" if facts.keras.is_keras3 or unscaled else "Scale the loss, unscale the gradients"
    return unsafe_fix(title, loss_scaled(facts, apply, gradient, unscaled))


def _message(facts: SourceFacts, apply: Call, how: str, unscaled: bool) -> str:
    if how == "factor":
        return (
            "The loss was never scaled, but this optimizer divides the gradients by its `loss_scale_factor`: every "
            "applied gradient is too small by that factor."
        )
    if facts.keras.is_keras3 or unscaled:
        return f"{DIVIDED}{starting_scale_in_words(apply.receiver)} times too small at first."
    return (
        "These gradients come from a loss that was never scaled: in float16 those below 3e-08 become zero, and the "
        "LossScaleOptimizer cannot prevent it."
    )


def _help(facts: SourceFacts, apply: Call, gradient: Call, unscaled: bool) -> str:
    of, loss = receiver_text(facts, apply), _name_of_loss(facts, gradient)
    where = "Before that" if is_without_tape(gradient) else "Inside the tape"
    if gradient.argument(2, "output_gradients") is not None:
        where, loss = f"{where} multiply by the `output_gradients` and add up, `loss = tf.reduce_sum(…)`;", "loss"
    return f"{where} {_what_to_write(of, loss, facts.keras.is_keras3, unscaled)}."


def _what_to_write(of: str, loss: str, is_keras3: bool, unscaled: bool = False) -> str:
    """The lines that scale the loss, and unscale the gradients if they have to and they are not `unscaled` yet."""
    scale = "scale_loss" if is_keras3 else "get_scaled_loss"
    scaled = f"write `scaled_loss = {of}.{scale}({loss})`,"
    if is_keras3 or unscaled:
        return f"{scaled} and differentiate `scaled_loss`"
    unscale = f"`gradients = {of}.get_unscaled_gradients(gradients)`"
    return f"{scaled} differentiate `scaled_loss`, and then unscale: {unscale}"


def _name_of_loss(facts: SourceFacts, gradient: Call) -> str:
    """The program's name for the loss that it differentiates; `loss` where that is no plain name."""
    given = argument_at(facts, gradient.location, 0, "target")
    text = text_of(facts, given) if given is not None else None
    return text if text is not None and text.replace(".", "_").isidentifier() else "loss"


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    seen = training.scale_dependence
    if seen is None or seen.is_scaled or seen.grows or seen.scaled_by_another or fixed_factor(training) is not None:
        return
    shrinks = seen.shrinks
    if not shrinks and (training.model.keras.is_keras3 or not training.model.computes_in_float16):
        return
    yield Finding(
        f"{DIVIDED}{training.initial_scale:g} times too small at first.{_step_of_library(training)}"
        if shrinks
        else "The loss was never scaled, although a LossScaleOptimizer applies its gradients: in float16 "
        f"those below 3e-08 become zero.{_step_of_library(training)}",
        _live_help(training),
        training.applied_at,
        model=training.model.id,
        evidence={"exponent": round(seen.median, 3)},
    )


def _live_help(training: TrainingFacts) -> str:
    of = "self.optimizer" if _is_step_of_library(training) else "optimizer"
    inside = f"inside the tape {_what_to_write(of, 'loss', training.model.keras.is_keras3)}"
    if not _is_step_of_library(training):
        return f"{capitalized(inside)}."
    return (
        "Train under mixed_bfloat16, which needs no loss scale. Or override `train_step` in a class of your own, with "
        f"the library's lines and these: {inside}."
    )


def _step_of_library(training: TrainingFacts) -> str:
    named = training.model.class_name
    return f" `{named}.train_step`, which takes them, is not your code." if _is_step_of_library(training) else ""


def _is_step_of_library(training: TrainingFacts) -> bool:
    """Whether none of the user's lines runs between their call of fit() and the optimizer, and so a library's class has
    a `train_step` of its own: Keras' scales the loss."""
    call = training.model.call
    return call.kind == "fit" and call.location is not None and training.applied_at == call.location
