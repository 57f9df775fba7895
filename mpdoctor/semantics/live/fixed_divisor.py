"""A constant by which a training loop divides its gradients, though the loss scale changes: the scale of one moment."""

from __future__ import annotations

import math

from mpdoctor.facts.training import TrainingFacts

EQUAL = 1e-3  # how far apart the two may be: the gradients were measured in float16's digits


def fixed_divisor(training: TrainingFacts) -> float | None:
    """The number by which the training code itself divides its gradients, where it is a loss scale of this training."""
    seen = training.scale_dependence
    if seen is None or seen.divided_by is None:
        return None
    scales = [training.initial_scale, *(step.loss_scale for step in training.steps)]
    return next((scale for scale in scales if scale and math.isclose(scale, seen.divided_by, rel_tol=EQUAL)), None)
