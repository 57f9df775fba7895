"""Sentences on gradients that an optimizer without a loss scale applies: nothing checks whether they are finite."""

from __future__ import annotations

from mpdoctor.facts.training import GradientCulpritFacts, TrainingFacts
from mpdoctor.facts.written_numbers import capitalized
from mpdoctor.semantics.live.tried_remedies import NOT_TRIED


def rule_of_foreign_scale(training: TrainingFacts) -> str:
    """The code of the rule that reports gradients which keep the loss scale of another optimizer, and break weights."""
    seen = training.scale_dependence
    return "MP912" if seen is not None and seen.keeps_foreign_scale else ""


def gradient_was_applied(training: TrainingFacts, before: int) -> bool:
    """Whether a gradient that is not finite was applied before that step, because no loss scale has it checked."""
    culprit = training.gradient_culprit
    return culprit is not None and culprit.scale is None and training.initial_scale is None and culprit.step < before


def step_applied_unchecked(training: TrainingFacts, before: int) -> int | None:
    """The number, from 1 on, of the first step before that one whose gradients were not finite, and were applied at a
    fixed loss scale; None where there is no such step."""
    if training.dynamic is not False:
        return None
    steps = enumerate(training.steps[:before], 1)
    return next((number for number, step in steps if step.applied and step.first_nonfinite is not None), None)


def optimizer_of(training: TrainingFacts) -> str:
    return training.model.optimizer[-1].class_name if training.model.optimizer else "the optimizer"


def remedy_without_scale(layer: str) -> str:
    """The advice for a gradient that is not finite where no loss scale has it checked. `layer`: its beginning, advice
    for the layer in which the gradient broke, or ""."""
    text = (
        f"{layer}apply the gradients with a LossScaleOptimizer: it skips such a step. Clipping does not help: "
        f"inf divided by its norm is no number. {NOT_TRIED}"
    )
    return capitalized(text)


def remedy_in_half_loss(culprit: GradientCulpritFacts) -> str | None:
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
