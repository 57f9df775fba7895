"""Constants in the place of the loss scale, which changes: a loss is multiplied by the scale of one moment, or its
gradients are divided by it."""

from __future__ import annotations

import math

from mpdoctor.facts.training import TrainingFacts

EQUAL = 1e-3  # how far apart the two may be: the gradients were measured in float16's digits


def fixed_divisor(training: TrainingFacts) -> float | None:
    """The number by which the training code itself divides its gradients, where it is a loss scale of this training."""
    seen = training.scale_dependence
    if seen is None or seen.divided_by is None:
        return None
    return next((scale for scale in _scales(training) if _is_same(scale, seen.divided_by)), None)


def fixed_factor(training: TrainingFacts) -> float | None:
    """The number by which the training code itself multiplies its loss, where it is a loss scale of this training, or
    the gradients are divided by it again."""
    seen = training.scale_dependence
    if seen is None:
        return None
    scales = [scale for scale in (*_scales(training), seen.divided_by) if scale is not None and scale > 1]
    return next((scale for scale in scales for number in seen.multiplied_by if _is_same(scale, number)), None)


def _scales(training: TrainingFacts) -> list[float]:
    """The loss scales that the training had, the initial one first."""
    scales = (training.initial_scale, *(step.loss_scale for step in training.steps))
    return [scale for scale in scales if scale]


def _is_same(scale: float, number: float) -> bool:
    return math.isclose(scale, number, rel_tol=EQUAL)
