"""Sentences that several training rules share: what was not finite first, and where."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any

from mpdoctor.facts.half_dtypes import ROUNDED_TO_ZERO
from mpdoctor.facts.location import Location, line_in_words
from mpdoctor.facts.training import CulpritFacts, GradientCulpritFacts, OperationFacts, TensorFacts, TrainingFacts
from mpdoctor.facts.written_numbers import capitalized, magnitude_text
from mpdoctor.semantics.live.broken_operations import GIVEN, broke, is_at_zero
from mpdoctor.semantics.live.causes import is_kept, rule_of_cause


def line_of(operation: OperationFacts, shown: Location | None) -> str:
    """ " (line 15)", with the file where that differs from the shown line's; "" for the shown line itself."""
    place = operation.location
    if place is None or (shown is not None and (place.path, place.line) == (shown.path, shown.line)):
        return ""
    in_file = f"{PurePath(place.path).name}, " if shown is not None and place.path != shown.path else ""
    return f" ({in_file}{line_in_words(place)})"


def flushed_below(scale: float) -> str:
    """The size below which a gradient is 0 in float16 at this loss scale."""
    return f"{ROUNDED_TO_ZERO / scale:.2g}"


def story_of_growth(training: TrainingFacts) -> str:
    """A sentence, where the training diverges; else ""."""
    if not training.diverges or training.growth is None:
        return ""
    growth, steps = training.growth, [step for step in training.steps if step.loss is not None]
    step, loss, weight = growth.rises[-1]
    return (
        f"The training diverges: the weights grew from step to step, the largest from {magnitude_text(growth.start)} "
        f"to {magnitude_text(weight)} at step {step + 1}, and the loss grew from "
        f"{magnitude_text(steps[0].loss or 0.0)} to {magnitude_text(loss) if math.isfinite(loss) else 'inf or NaN'}."
    )


def evidence_of_growth(training: TrainingFacts) -> dict[str, Any]:
    """Marks the findings that have one cause: weights that ran away."""
    return {"weights_ran_away": True} if training.weights_ran_away else {}


def evidence_of_operands(operation: OperationFacts | None) -> dict[str, Any]:
    """The largest magnitude of each value that the line of the operation names."""
    named = () if operation is None else operation.operands
    return {"operands": {operand.name: operand.largest for operand in named}} if named else {}


def culprit_evidence(training: TrainingFacts) -> dict[str, Any]:
    """The first variable whose gradient was not finite, and the layer and the operation, where a repetition found
    them. `told_by` is the rule whose finding this one refers the reader to, and with which it is shown."""
    culprit, operation = training.gradient_culprit, training.broken_operation
    variable = next((step.first_nonfinite for step in training.steps if step.first_nonfinite), None)
    layer = training.culprit.overflow.layer if training.culprit else culprit and culprit.layer
    named = {
        "first_nonfinite_gradient": (culprit and culprit.variable) or variable,
        "first_nonfinite_layer": layer,
        "told_by": rule_of_cause(training),
        **evidence_of_operands(operation),
        "operation": operation and operation.name,
        "at_zero": is_at_zero(operation),
        "gradients": [in_words(frame) for frame in culprit.frames] if culprit else None,
    }
    return {**evidence_of_growth(training), **{key: value for key, value in named.items() if value}}


def line_of_gradient(training: TrainingFacts) -> Location | None:
    """The line of the operation where the gradient broke, else that of the training call."""
    culprit = training.gradient_culprit
    return (culprit.operation.location if culprit and culprit.operation else None) or training.model.call.location


def why_from_culprit(training: TrainingFacts, shown: Location | None = None) -> str:
    """A sentence to add, where a gradient or the loss is the cause; MP904 reports a layer. `shown` is the line that the
    finding shows, None for that of the training call."""
    if training.diverges:
        return f" {story_of_growth(training)}"
    culprit, loss = training.gradient_culprit, training.loss_culprit
    if culprit is not None:
        story = story_of_gradient(culprit, shown or training.model.call.location)
        return f" {capitalized(story)}"
    if loss is None:
        return ""
    if loss.given in GIVEN:
        clause = broke(loss)
        return f" {capitalized(clause)}."
    return f" In the loss, {broke(loss)}{line_of(loss, shown or training.model.call.location)}."


def why_not_followed(training: TrainingFacts) -> str:
    """Why no search for the first number that is not finite was made, with the error of the step where it raised one;
    "" where it was made."""
    return next((why for measurement, why in training.not_looked if measurement == "first number not finite"), "")


def named_culprit(culprit: CulpritFacts) -> str:
    """The name of the layer with its kind. A function between the layers of a functional model is not called a
    layer."""
    return f"`{culprit.overflow.layer}`" if culprit.is_function else f"layer `{culprit.overflow.layer}`"


def story_of_gradient(culprit: GradientCulpritFacts, shown: Location | None) -> str:
    """A sentence: where in the backward pass it broke, and with which numbers. `shown` is the line that the finding
    shows."""
    scale = "" if culprit.scale is None else f" at the loss scale {culprit.scale:g}"
    noun = "" if culprit.is_function else "layer "
    place = f" in {noun}`{culprit.layer}` ({culprit.layer_class})" if culprit.layer else ""
    if culprit.where == "loss":
        place = " between the loss and the model's output"
    if culprit.where == "loop":
        place = " where the training code handles the gradients"
    how = f": {broke(culprit.operation)}{line_of(culprit.operation, shown)}" if culprit.operation else ""
    if culprit.operation and is_kept(culprit):
        how = f": a variable that it reads{line_of(culprit.operation, shown)} holds inf or NaN from a step before"
    first = f"the gradient of `{culprit.variable}`" if culprit.variable else "a gradient"
    before = f"; the gradient before it reaches {magnitude_text(culprit.frames[-1].largest)}" if culprit.frames else ""
    without = ", and it does so without any loss scale too" if culprit.without_scale else ""
    return f"inf or NaN came first in {first}, step {culprit.step + 1}{scale}{without}. It breaks{place}{how}{before}."


def in_words(tensor: TensorFacts) -> str:
    """One frame: "dense (Dense) float16, up to 5.2e+04"."""
    call = f", call {tensor.call}" if tensor.call > 1 else ""
    return f"{tensor.layer} ({tensor.layer_class}{call}) {tensor.dtype}, up to {tensor.largest:.3g}"


def optimizer_of(training: TrainingFacts) -> str:
    return training.model.optimizer[-1].class_name if training.model.optimizer else "the optimizer"
