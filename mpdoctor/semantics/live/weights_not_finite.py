"""How a loss scale of 0 made weights NaN, and the advice where a weight is that before a layer computes with it."""

from __future__ import annotations

from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import CulpritFacts, TrainingFacts

POSITIVE_START = "Give `initial_scale` a positive number, or leave it out: the default is 32768."


def starts_at_zero(training: TrainingFacts) -> bool:
    """Whether the loss scale is 0 from the first step on, because the program asked for that."""
    return bool(training.dynamic) and training.initial_scale == 0


def step_divided_by_zero(training: TrainingFacts) -> int | None:
    """The number, from 1 on, of the first step that was applied at a loss scale of 0, None where no step was. Its
    gradients, all 0, were divided by 0, and its update wrote NaN into the weights."""
    applied = (number for number, step in enumerate(training.steps, 1) if step.applied and step.loss_scale == 0)
    return next(applied, None)


def remedy_of_weight(culprit: CulpritFacts, model: ModelFacts) -> str:
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
