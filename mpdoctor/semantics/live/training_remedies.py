"""What to do about the first numbers of a training that were not finite."""

from __future__ import annotations

from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import CulpritFacts, GradientCulpritFacts, OperationFacts, TrainingFacts
from mpdoctor.facts.written_numbers import capitalized
from mpdoctor.knowledge.api_names import PROBABILITIES
from mpdoctor.semantics.live.broken_operations import (
    beside_float32,
    is_of_weights,
    is_overflow,
    remedy_from_operation,
    says_where_to_look,
)
from mpdoctor.semantics.live.causes import dtype_of_culprit, is_kept, rule_of_culprit
from mpdoctor.semantics.live.second_training import remedies_to_report
from mpdoctor.semantics.live.training_texts import named_culprit, why_not_followed
from mpdoctor.semantics.live.tried_remedies import NOT_TRIED, after_trials

IN_A_FLOAT32_LOSS = (
    "No layer's output overflows and the predictions are float32 already: look in the loss for a logarithm, a root or "
    f"a quotient of 0, and in the data for NaN. {NOT_TRIED}"
)
POSITIVE_START = "Give `initial_scale` a positive number, or leave it out: the default is 32768."


def remedy_from_culprit(training: TrainingFacts) -> str:
    """The advice for the layer whose output was the first that is not finite."""
    if training.diverges:
        return remedy_of_growth(training)
    culprit, loss = training.gradient_culprit, training.loss_culprit
    if training.culprit is not None and is_of_weights(training.culprit.operation):
        return _remedy_of_weight(training.culprit, training.model)
    if training.culprit is not None and dtype_of_culprit(training.culprit) == "bfloat16":
        return _remedy_in_bfloat16(training, training.culprit)
    if training.culprit is not None and dtype_of_culprit(training.culprit) != "float16":
        return (
            f"It starts in {named_culprit(training.culprit)}, which already computes in float32, so no dtype helps: "
            "make its input smaller, or change its computation."
        )
    if training.culprit is not None:
        return f"It starts in {named_culprit(training.culprit)}: fix it there (see {rule_of_culprit(training)})."
    if culprit is not None:
        return _remedy_from_gradient(training, culprit)
    if loss is not None:
        return _remedy_in_loss(training, loss)
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


def remedy_of_growth(training: TrainingFacts) -> str:
    """The advice for weights that diverge."""
    rate = training.growth.learning_rate if training.growth is not None else None
    if rate is None:
        return f"Lower the learning rate. {NOT_TRIED}"
    return (
        f"Lower the learning rate: {rate:.3g} is too high for this model; try a tenth of it, {rate / 10:.2g}. "
        f"{NOT_TRIED}"
    )


def _remedy_of_weight(culprit: CulpritFacts, model: ModelFacts) -> str:
    """The advice for a layer that reads a weight that is inf or NaN."""
    if culprit.step == 0 and model.call.kind == "none":
        return (
            "The model was loaded or made with a weight that is inf or NaN, and no dtype helps. Check its initial "
            "value. A file with such a weight was saved after its training had failed: take an older file, or train "
            "again."
        )
    if culprit.step == 0:
        return (
            "A weight is inf or NaN in the very first step, before the layer is called. Check its initial value, "
            "and what the step itself assigns to weights before it calls the model again: gradients of a scaled "
            "loss are inf now and then, and only what the optimizer applies is checked."
        )
    return (
        "A weight is inf or NaN before the step begins. Check its initial value and the earlier steps: a learning "
        "rate that is too high, an epsilon that is 0 in float16, or gradients that are applied without a check."
    )


def _remedy_from_gradient(training: TrainingFacts, culprit: GradientCulpritFacts) -> str:
    """The advice for the gradient that was the first that is not finite."""
    if is_kept(culprit):
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
        return _remedy_without_scale(layer)
    return _remedy_in_half_loss(culprit) or (
        "Look for values far beyond the others in the batches of these steps. Clip the gradients in the inner "
        "optimizer, `LossScaleOptimizer(Adam(global_clipnorm=1.0))`, standardise the targets, "
        f"{layer or 'or '}use a smaller learning rate. {NOT_TRIED}"
    )


def _layers_healed(training: TrainingFacts) -> bool:
    """Whether trials showed that the step breaks without any loss scale, which the step of an eager loop does not show
    by itself: layers in float32 healed it."""
    return any(remedy.kind == "float32-layers" and remedy.tried == "healed" for remedy in remedies_to_report(training))


def _remedy_without_scale(layer: str) -> str:
    """The advice for a gradient that is not finite where no loss scale has it checked. `layer`: its beginning, advice
    for the layer in which the gradient broke, or ""."""
    text = (
        f"{layer}apply the gradients with a LossScaleOptimizer: it skips such a step. Clipping does not help: "
        f"inf divided by its norm is no number. {NOT_TRIED}"
    )
    return capitalized(text)


def _remedy_in_half_loss(culprit: GradientCulpritFacts) -> str | None:
    """The advice where a gradient leaves float16's range in what a loss computes in it, at a loss scale that is no
    reason for it; None for others."""
    operation = culprit.operation
    if culprit.where != "loss" or operation is None or operation.dtype != "float16":
        return None
    if culprit.scale is None or culprit.scale > 1:
        return None
    place = f"line {operation.location.line}" if operation.location is not None else "the loss"
    return (
        f"{capitalized(place)} computes in float16 here, and no loss scale is small enough: give the model's last "
        f'layers `dtype="float32"`, or cast their outputs to float32 before they get there. {NOT_TRIED}'
    )


def _remedy_in_loss(training: TrainingFacts, operation: OperationFacts) -> str:
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


def holds_own_layers(training: TrainingFacts, path: str) -> bool:
    """Whether a layer or model holds layers that the user's code makes: those have dtypes of their own, and its dtype
    does not reach them. `path` is a layer's path, or the name of the whole model."""
    layer = next((seen for seen in training.model.layers if seen.path == path), None)
    if layer is None:
        return path == training.model.name
    return (layer.is_model or layer.own_class) and bool(training.model.inside(layer))
