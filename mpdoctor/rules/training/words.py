"""What several training rules say alike: what broke first, and what to do about it."""

from __future__ import annotations

from typing import Any

from mpdoctor.facts.training import GradientCulpritFacts, OperationFacts, TensorFacts, TrainingFacts
from mpdoctor.rules.training.operations import (
    broke,
    is_emptied_softmax,
    is_of_input,
    is_of_weights,
    is_overflow,
    number,
    remedy_from_operation,
)

FLOAT16_LIMIT = 65504
ROUNDED_TO_ZERO = 2.0**-25  # half of the smallest number of float16


def line_of(operation: OperationFacts) -> str:
    return f" (line {operation.location.line})" if operation.location else ""


def flushed_below(scale: float) -> str:
    """The gradients that this loss scale does not lift into float16: what is smaller than this is 0 there."""
    return f"{ROUNDED_TO_ZERO / scale:.2g}"


def story_of_growth(training: TrainingFacts) -> str:
    """A sentence, where the training diverges; else ""."""
    if not training.diverges or training.growth is None:
        return ""
    growth, steps = training.growth, [step for step in training.steps if step.loss is not None]
    step, loss, weight = growth.rises[-1]
    return (
        f"The training diverges: from step to step the weights grew, the largest from {number(growth.start)} to "
        f"{number(weight)} at step {step + 1}, and the loss from {number(steps[0].loss or 0.0)} to {number(loss)}."
    )


def remedy_of_growth(training: TrainingFacts) -> str:
    rate = training.growth.learning_rate if training.growth is not None else None
    if rate is None:
        return "Lower the learning rate."
    return f"Lower the learning rate: {rate:.3g} is too high for this model, {rate / 10:.2g} is a tenth of it."


def culprit_evidence(training: TrainingFacts) -> dict[str, Any]:
    """The first variable whose gradient was not finite, and the layer and the operation, where a repetition found
    them."""
    evidence: dict[str, Any] = {}
    found = training.gradient_culprit
    variable = next((step.first_nonfinite for step in training.steps if step.first_nonfinite), None)
    if (found and found.variable) or variable:
        evidence["first_nonfinite_gradient"] = found.variable if found and found.variable else variable
    if training.culprit:
        evidence["first_nonfinite_layer"] = training.culprit.overflow.layer
    elif found and found.layer:
        evidence["first_nonfinite_layer"] = found.layer
    if training.broken_operation and training.broken_operation.name:
        evidence["operation"] = training.broken_operation.name
    if found and found.frames:
        evidence["gradients"] = [in_words(frame) for frame in found.frames]
    return evidence


def why_from_culprit(training: TrainingFacts) -> str:
    """A sentence to add, where a gradient or the loss is why; of a layer MP904 speaks."""
    if training.diverges:
        return f" {story_of_growth(training)}"
    found, loss = training.gradient_culprit, training.loss_culprit
    if found is not None:
        story = story_of_gradient(found)
        return f" {story[0].upper()}{story[1:]}"
    return f" In the loss, {broke(loss)}{line_of(loss)}." if loss is not None else ""


def remedy_from_culprit(training: TrainingFacts) -> str:
    if training.diverges:
        return remedy_of_growth(training)
    found, loss = training.gradient_culprit, training.loss_culprit
    if training.culprit is not None and is_of_weights(training.culprit.operation):
        return (
            "A weight is inf or NaN: an earlier step wrote it. Look at what that step did: a learning rate too high, "
            "an epsilon of 0 in float16, gradients that nobody checked."
        )
    if training.culprit is not None:
        operation = training.culprit.operation
        by = "MP601" if is_of_input(operation) else "MP511" if is_emptied_softmax(operation) else "MP904"
        return f"It begins in layer `{training.culprit.overflow.layer}` (see {by}): mend it there."
    if found is not None:
        return remedy_from_gradient(found)
    if loss is not None:
        return remedy_from_operation(loss)
    return (
        "No layer's output overflows, so look at the loss and at what happens between the layers: compute it in "
        "float32, tf.cast(predictions, tf.float32)."
    )


def story_of_gradient(found: GradientCulpritFacts) -> str:
    """A sentence: where on the way back it broke, and with what numbers."""
    scale = "" if found.scale is None else f" at the loss scale {found.scale:g}"
    place = f" in layer `{found.layer}` ({found.layer_class})" if found.layer else ""
    if found.where == "loss":
        place = " between the loss and the model's output"
    if found.where == "loop":
        place = " in what the training code does with the gradients"
    what = f": {broke(found.operation)}{line_of(found.operation)}" if found.operation else ""
    first = f"the gradient of `{found.variable}`" if found.variable else "a gradient"
    before = f"; the gradient before it reaches {number(found.frames[-1].largest)}" if found.frames else ""
    without = ", and so it is without any loss scale" if found.without_scale else ""
    return f"inf or NaN came first in {first}, step {found.step + 1}{scale}{without}. It breaks{place}{what}{before}."


def remedy_from_gradient(found: GradientCulpritFacts) -> str:
    if found.operation is not None and not is_overflow(found.operation):
        return remedy_from_operation(found.operation, found.layer)
    layer = f'give layer `{found.layer}` dtype="float32", or ' if found.layer else ""
    if found.without_scale:
        text = f"{layer}standardise what makes it so large: targets, class weights, sample weights, the loss's factor."
        return text[0].upper() + text[1:]
    return (
        "Look at the batches of these steps for values far beyond the others; clip the gradients of the inner "
        "optimizer, `LossScaleOptimizer(Adam(global_clipnorm=1.0))`, standardise the targets, or "
        f"{layer or 'use '}a smaller learning rate."
    )


def in_words(tensor: TensorFacts) -> str:
    """One frame: "dense (Dense) float16, up to 5.2e+04"."""
    call = f", call {tensor.call}" if tensor.call > 1 else ""
    return f"{tensor.layer} ({tensor.layer_class}{call}) {tensor.dtype}, up to {tensor.largest:.3g}"
