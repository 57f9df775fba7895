"""The size of an update depends on the loss scale, which should cancel out.

## Why it matters

Loss scaling multiplies the loss by S and divides the gradients by S, so the scale must cancel out. mpdoctor
trains one batch twice from the same state at two scales, 64 times apart, and compares the gradients that reach
the innermost optimizer. If they shrink as the scale grows, gradients are divided by a scale that never
multiplied the loss, or are divided twice: at the usual scale updates are 32768 times too small, and the
training silently crawls. If they grow with the scale, gradients were never divided, and updates are 32768 times
too large, or the loss is multiplied, or its gradients are divided, by a loss scale of one moment
(`initial_scale`, a number), which is right only until the scale changes.

## Flagged

```python
# keras: 3
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x, y = np.random.rand(64, 4).astype("float32"), np.random.rand(64, 1).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
for _ in range(60):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))  # not scaled; Keras 3 divides the gradients all the same
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Fixed

```python
# keras: 3
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x, y = np.random.rand(64, 4).astype("float32"), np.random.rand(64, 1).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
optimizer.build(model.trainable_variables)
for _ in range(60):
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(tf.reduce_mean(tf.square(model(x) - y)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Versions

All.

## Where users met it

keras-team/keras#19244, keras-team/keras#19479, keras-team/keras#20894, keras-team/keras#16552.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.location import line_in_words
from mpdoctor.facts.training import SOME, ScaleDependenceFacts, TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.fixed_scales import fixed_divisor, fixed_factor
from mpdoctor.semantics.live.training_texts import optimizer_of

SEVERITY = Severity.ERROR
PROPORTIONAL = 0.05  # how far an exponent may be from a whole number
UNSCALE = "Divide them by the scale in force: `gradients = optimizer.get_unscaled_gradients(gradients)`."


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    seen = training.scale_dependence
    if seen is None or abs(seen.median) <= SOME:
        return
    if seen.grows and training.initial_scale is None and not seen.keeps_foreign_scale:
        return  # divided by a number, and nothing adjusts the scale that it stands for
    number = fixed_divisor(training) if seen.grows else fixed_factor(training)
    if number is not None and training.dynamic is False and number == training.initial_scale:
        return  # it never changes
    apart = f" by a factor of {(seen.high / seen.low) ** abs(seen.median):.3g}" if _is_in_proportion(seen) else ""
    yield Finding(
        f"{_wrong_by(training, seen, number)} For the same batch, the gradients at the loss scales {seen.low:g} and "
        f"{seen.high:g} differ{apart}, and should be equal.",
        _remedy_of_constant(training, seen) if number is not None else _remedy(seen, training.model.keras.is_keras3),
        training.applied_at or training.model.call.location,
        model=training.model.id,
        evidence={"exponent": round(seen.median, 3), "scales": [seen.low, seen.high]},
    )


def _wrong_by(training: TrainingFacts, seen: ScaleDependenceFacts, number: float | None) -> str:
    """A sentence on how the applied gradients depend on the loss scale. `number`: a loss scale by which the training
    code divides, or multiplies, at every scale."""
    if number is not None:
        how = "divides the gradients" if seen.grows else "multiplies the loss"
        wrong = _wrong_at(training, number, is_divisor=seen.grows)
        return f"The training code {how} by {number:g} at every loss scale: {wrong}."
    if seen.shrinks and seen.scaled_by_another:
        return (
            "The loss was scaled by another optimizer than the one that divides its gradients: they are wrong by the "
            "ratio of the two loss scales, and shrink as this one's grows."
        )
    by_how_much = _by_how_much(training, seen) if _is_in_proportion(seen) else ""
    if seen.shrinks:
        return (
            f"The applied gradients shrink as the loss scale grows: {by_how_much}."
            if by_how_much
            else "A part of the applied gradients shrinks as the loss scale grows."
        )
    if not seen.scaled_by_another:
        return (
            f"The applied gradients grow with the loss scale: {by_how_much}."
            if by_how_much
            else "A part of the applied gradients grows with the loss scale."
        )
    by = "the LossScaleOptimizer around it" if seen.scaled_by_its_wrapper else "another optimizer"
    return (
        f"{optimizer_of(training)} applies gradients of a loss that {by} scaled, and nothing divides them by that "
        f"scale{f': {by_how_much}' if by_how_much else ''}."
    )


def _by_how_much(training: TrainingFacts, seen: ScaleDependenceFacts) -> str:
    """A clause: how many times too small or too large the gradients are at the scale that the training began with."""
    scale = training.initial_scale or seen.high
    at = "at the initial scale" if training.initial_scale else f"at the loss scale {scale:g}"
    times = f"{scale ** abs(round(seen.median, 2)):.5g} times"
    return f"{at} they are {times} too {'small' if seen.shrinks else 'large'}"


def _remedy_of_constant(training: TrainingFacts, seen: ScaleDependenceFacts) -> str:
    if seen.grows:
        return UNSCALE
    call = "scale_loss" if training.model.keras.is_keras3 else "get_scaled_loss"
    return f"Multiply it by the scale in force: `scaled_loss = optimizer.{call}(loss)`, inside the tape."


def _wrong_at(training: TrainingFacts, number: float, is_divisor: bool) -> str:
    """A clause: by how much gradients are wrong at the last other loss scale of the training, or at half of it."""
    others = [(n, step.loss_scale) for n, step in enumerate(training.steps, 1) if step.loss_scale not in (number, None)]
    place, scale = (f", the scale of step {others[-1][0]},", others[-1][1]) if others else ("", number / 2)
    assert scale is not None
    times = max(number / scale, scale / number)
    wrong = f"{times:.5g} times too {'small' if (scale < number) is is_divisor else 'large'}"
    return f"at {scale:g}{place} every applied gradient is {wrong}"


def _is_in_proportion(seen: ScaleDependenceFacts) -> bool:
    """Whether the gradients follow a power of the loss scale. They do not where only a part of the loss is scaled, or
    where a sum holds gradients of earlier steps, at their own scale: the size seen is that of this one moment."""
    return abs(seen.median - round(seen.median)) < PROPORTIONAL


def _remedy(seen: ScaleDependenceFacts, is_keras3: bool) -> str:
    if seen.shrinks and seen.scaled_by_another:
        call = "scale_loss" if is_keras3 else "get_scaled_loss"
        return f"Scale each loss by the optimizer that applies its gradients: `optimizer.{call}(loss)`."
    if seen.shrinks:
        return "Scale the loss that the tape differentiates, once, and let the wrapper divide the gradients, once."
    if seen.loss is not None and seen.loss > 1 + SOME:
        return f"The loss is scaled twice{_both_places(seen)}: scale it once."
    if seen.scaled_by_another and not seen.scaled_by_its_wrapper:
        return "Wrap this optimizer in a LossScaleOptimizer of its own, and scale its loss with that one."
    if is_keras3:  # its wrapper always divides, so these gradients were not applied by it
        return "Apply the gradients with the LossScaleOptimizer that scaled the loss: it divides them by its scale."
    return "Divide the gradients by the scale before they are applied: get_unscaled_gradients(gradients)."


def _both_places(seen: ScaleDependenceFacts) -> str:
    first, again = seen.scaled_before_at, seen.scaled_at
    if first is None or again is None:
        return ""
    if first.path == again.path:
        return f", in {line_in_words(first)} and again in {line_in_words(again)}"
    return f", in {first.path}, {line_in_words(first)}, and again in {again.path}, {line_in_words(again)}"
