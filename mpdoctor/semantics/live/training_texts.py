"""Sentences that several training rules share: what was not finite first, and what to do about it."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any

from mpdoctor.facts.half_dtypes import ROUNDED_TO_ZERO
from mpdoctor.facts.location import Location, line_in_words
from mpdoctor.facts.training import CulpritFacts, GradientCulpritFacts, OperationFacts, TensorFacts, TrainingFacts
from mpdoctor.facts.written_numbers import capitalized, magnitude_text
from mpdoctor.knowledge.api_names import PROBABILITIES
from mpdoctor.semantics.live.broken_operations import (
    GIVEN,
    beside_float32,
    broke,
    is_emptied_softmax,
    is_of_input,
    is_of_weights,
    is_overflow,
    remedy_from_operation,
    says_where_to_look,
)
from mpdoctor.semantics.live.gradients_without_check import (
    remedy_in_half_loss,
    remedy_without_scale,
    rule_of_foreign_scale,
)
from mpdoctor.semantics.live.second_training import remedies_to_report
from mpdoctor.semantics.live.tried_remedies import NOT_TRIED, after_trials
from mpdoctor.semantics.live.weights_not_finite import remedy_of_weight


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


def remedy_of_growth(training: TrainingFacts) -> str:
    """The advice for weights that diverge."""
    rate = training.growth.learning_rate if training.growth is not None else None
    if rate is None:
        return f"Lower the learning rate. {NOT_TRIED}"
    return (
        f"Lower the learning rate: {rate:.3g} is too high for this model; try a tenth of it, {rate / 10:.2g}. "
        f"{NOT_TRIED}"
    )


def evidence_of_growth(training: TrainingFacts) -> dict[str, Any]:
    """Marks the findings that have one cause: weights that ran away."""
    return {"weights_ran_away": True} if training.weights_ran_away else {}


def evidence_of_operands(operation: OperationFacts | None) -> dict[str, Any]:
    """The largest magnitude of each value that the line of the operation names."""
    named = () if operation is None else operation.operands
    return {"operands": {operand.name: operand.largest for operand in named}} if named else {}


def rule_of_culprit(training: TrainingFacts) -> str:
    """The code of the rule that reports the layer whose numbers were not finite first; "" where there is none."""
    culprit = training.culprit
    if culprit is None or training.diverges or is_of_weights(culprit.operation) or _dtype_of(culprit) != "float16":
        return ""
    if is_of_input(culprit.operation):
        return "MP601"
    return "MP511" if is_emptied_softmax(culprit.operation) else "MP904"


def _dtype_of(culprit: CulpritFacts) -> str:
    """The dtype of the operation or of the output that broke. Of layers that break in another dtype than float16 no
    rule of their own tells."""
    return (culprit.operation or culprit.overflow).dtype


def _rule_of_loss(training: TrainingFacts) -> str:
    """The code of the rule that reports a loss whose numbers were not finite first; "" where there is none."""
    first = training.culprit or training.gradient_culprit
    return "MP907" if training.loss_culprit is not None and first is None and not training.diverges else ""


def _rule_of_kept_gradients(culprit: GradientCulpritFacts | None) -> str:
    return "MP406" if culprit is not None and _is_kept(culprit) else ""


def _is_kept(culprit: GradientCulpritFacts) -> bool:
    """Whether the training code reads a variable with gradients of earlier steps that are not finite."""
    return culprit.where == "loop" and is_of_weights(culprit.operation)


def culprit_evidence(training: TrainingFacts) -> dict[str, Any]:
    """The first variable whose gradient was not finite, and the layer and the operation, where a repetition found
    them. `told_by` is the rule whose finding this one refers the reader to, and with which it is shown."""
    culprit, operation = training.gradient_culprit, training.broken_operation
    variable = next((step.first_nonfinite for step in training.steps if step.first_nonfinite), None)
    layer = training.culprit.overflow.layer if training.culprit else culprit and culprit.layer
    told_by = (
        rule_of_foreign_scale(training)
        or rule_of_culprit(training)
        or _rule_of_loss(training)
        or _rule_of_kept_gradients(culprit)
    )
    named = {
        "first_nonfinite_gradient": (culprit and culprit.variable) or variable,
        "first_nonfinite_layer": layer,
        "told_by": told_by,
        **evidence_of_operands(operation),
        "operation": operation and operation.name,
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


IN_A_FLOAT32_LOSS = (
    "No layer's output overflows and the predictions are float32 already: look in the loss for a logarithm, a root or "
    f"a quotient of 0, and in the data for NaN. {NOT_TRIED}"
)


def remedy_from_culprit(training: TrainingFacts) -> str:
    """The advice for the layer whose output was the first that is not finite."""
    if training.diverges:
        return remedy_of_growth(training)
    culprit, loss = training.gradient_culprit, training.loss_culprit
    if training.culprit is not None and is_of_weights(training.culprit.operation):
        return remedy_of_weight(training.culprit, training.model)
    if training.culprit is not None and _dtype_of(training.culprit) == "bfloat16":
        return _remedy_in_bfloat16(training, training.culprit)
    if training.culprit is not None and _dtype_of(training.culprit) != "float16":
        return (
            f"It starts in {named_culprit(training.culprit)}, which already computes in float32, so no dtype helps: "
            "make its input smaller, or change its computation."
        )
    if training.culprit is not None:
        return f"It starts in {named_culprit(training.culprit)}: fix it there (see {rule_of_culprit(training)})."
    if culprit is not None:
        return remedy_from_gradient(training, culprit)
    if loss is not None:
        return remedy_in_loss(training, loss)
    if reason := why_not_followed(training):
        return f"Check the batch of the failing step, the loss and each layer's output: {reason}."
    if training.model.predicts_in_float32:
        return IN_A_FLOAT32_LOSS
    return (
        "No layer's output overflows, so check the loss and the operations between the layers, and compute them in "
        f"float32, tf.cast(predictions, tf.float32). {NOT_TRIED}"
    )


def _remedy_in_bfloat16(training: TrainingFacts, culprit: CulpritFacts) -> str:
    """The advice for a layer that broke in bfloat16: it has float32's range, but two digits."""
    layer = culprit.overflow.layer
    if culprit.operation is not None:
        return remedy_after_trials(training, culprit.operation, layer)
    return after_trials(training, f'Let it compute in float32: give `{layer}` dtype="float32".')


def holds_own_layers(training: TrainingFacts, path: str) -> bool:
    """Whether a layer or model holds layers that the user's code makes: those have dtypes of their own, and its dtype
    does not reach them. `path` is a layer's path, or the name of the whole model."""
    layer = next((seen for seen in training.model.layers if seen.path == path), None)
    if layer is None:
        return path == training.model.name
    return (layer.is_model or layer.own_class) and bool(training.model.inside(layer))


def named_culprit(culprit: CulpritFacts) -> str:
    """The name of the layer with its kind. A function between the layers of a functional model is not called a
    layer."""
    return f"`{culprit.overflow.layer}`" if culprit.is_function else f"layer `{culprit.overflow.layer}`"


def remedy_in_loss(training: TrainingFacts, operation: OperationFacts) -> str:
    """The remedy for an operation outside of all layers: the 0 in a log() of 0 may be the model's own output."""
    if operation.name == "Log" and operation.holds_zero and training.model.half_output(PROBABILITIES):
        head = next(layer for layer in training.model.layers if layer.is_output)
        activation = head.activation
        text = (
            f'Give `{head.path}` dtype="float32": its {head.compute_dtype} {activation} returns 0 for small '
            "probabilities, and the gradient of their logarithm is cast back to 16 bits."
        )
        return after_trials(training, text)
    return remedy_after_trials(training, operation)


def remedy_after_trials(training: TrainingFacts, operation: OperationFacts, layer: str = "") -> str:
    """The remedy for the operation that broke, with the result of the trials where it is float32. `layer` is the layer
    that contains the operation, "" outside of all layers."""
    to_give = "" if holds_own_layers(training, layer) else layer
    text, beside = remedy_from_operation(operation, to_give), beside_float32(operation)
    if beside is not None:
        return after_trials(training, text, beside, in_layers=training.loss_culprit is None)
    tried = (remedy for remedy in remedies_to_report(training) if remedy.kind != "smaller-scale")
    healed = any(remedy.tried == "healed" for remedy in tried)
    if healed:
        return f"{after_trials(training, text)} Not tried: {text[0].lower()}{text[1:]}"
    return text if says_where_to_look(operation) else f"{text} {NOT_TRIED}"


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
    if culprit.operation and _is_kept(culprit):
        how = f": a variable that it reads{line_of(culprit.operation, shown)} holds inf or NaN from a step before"
    first = f"the gradient of `{culprit.variable}`" if culprit.variable else "a gradient"
    before = f"; the gradient before it reaches {magnitude_text(culprit.frames[-1].largest)}" if culprit.frames else ""
    without = ", and it does so without any loss scale too" if culprit.without_scale else ""
    return f"inf or NaN came first in {first}, step {culprit.step + 1}{scale}{without}. It breaks{place}{how}{before}."


def remedy_from_gradient(training: TrainingFacts, culprit: GradientCulpritFacts) -> str:
    """The advice for the gradient that was the first that is not finite."""
    if _is_kept(culprit):
        return (
            "Leave gradients that are not finite out of that variable, or set it back after such a step: a skipped "
            f"step undoes nothing there. {NOT_TRIED}"
        )
    if culprit.operation is not None and not is_overflow(culprit.operation):
        return remedy_after_trials(training, culprit.operation, "" if culprit.is_function else culprit.layer)
    can_be_given = culprit.layer and not culprit.is_function and not holds_own_layers(training, culprit.layer)
    layer = f'give layer `{culprit.layer}` dtype="float32", or ' if can_be_given else ""
    if culprit.without_scale or _layers_healed(training):
        beside = (
            "scale down the values that make it so large: targets, class weights, sample weights, the loss's factor"
        )
        text = f"{layer}{beside}."
        return after_trials(training, capitalized(text), beside)
    if culprit.scale is None and training.initial_scale is None:
        return remedy_without_scale(layer)
    return remedy_in_half_loss(culprit) or (
        "Look for values far beyond the others in the batches of these steps. Clip the gradients in the inner "
        "optimizer, `LossScaleOptimizer(Adam(global_clipnorm=1.0))`, standardise the targets, "
        f"{layer or 'or '}use a smaller learning rate. {NOT_TRIED}"
    )


def _layers_healed(training: TrainingFacts) -> bool:
    """Whether trials showed that the step breaks without any loss scale, which the step of an eager loop does not show
    by itself: layers in float32 healed it."""
    return any(remedy.kind == "float32-layers" and remedy.tried == "healed" for remedy in remedies_to_report(training))


def in_words(tensor: TensorFacts) -> str:
    """One frame: "dense (Dense) float16, up to 5.2e+04"."""
    call = f", call {tensor.call}" if tensor.call > 1 else ""
    return f"{tensor.layer} ({tensor.layer_class}{call}) {tensor.dtype}, up to {tensor.largest:.3g}"
