"""What the steps of a short training show: which were skipped, which were applied unchecked, and how the scale went."""

from __future__ import annotations

import math

from mpdoctor.facts.half_dtypes import LOST_SCALE
from mpdoctor.facts.training import StepFacts, TrainingFacts
from mpdoctor.semantics.live.verdict_meanings import FEWEST_STEPS, HALVINGS_OF_THE_UNFIT, SHORTEST_INTERVAL

MOST_LOST = 10  # the script's own steps, for each of them that is applied


def steps_at_the_end(training: TrainingFacts) -> tuple[StepFacts, ...]:
    """The steps in the last third of the training."""
    number = len(training.steps)
    return training.steps[number - number // 3 :]


def skips_at_the_end(training: TrainingFacts) -> int:
    return sum(not step.applied for step in steps_at_the_end(training))


def fallen_scale(training: TrainingFacts) -> float | None:
    """The loss scale of the last step, if it fell so far that training goes on without its smaller gradients."""
    last = training.steps[-1].loss_scale
    has_fallen = training.floor is None and training.dynamic and last is not None and last < LOST_SCALE
    return last if has_fallen else None


def first_applied(training: TrainingFacts) -> int | None:
    """The number of the first step, from 0 on, that was not skipped."""
    return next((number for number, step in enumerate(training.steps) if step.applied), None)


def skips_beyond_float16(training: TrainingFacts) -> list[int]:
    """Skipped steps, from 0 on, whose gradients were not finite at a scale of 1 or less: it is not the scale that takes
    them out of float16. [] where the scale lies above 1 again, or nothing else was skipped at Keras 2's floor."""
    last = training.steps[-1].loss_scale
    skips = [n for n, step in enumerate(training.steps) if not step.applied and (step.loss_scale or 0.0) <= 1]
    if training.floor is not None:
        return skips if last == training.floor and len(skips) > HALVINGS_OF_THE_UNFIT else []
    return skips if last is not None and last < 1 else []


def lost_losses(training: TrainingFacts) -> list[int]:
    """Skipped steps, from 0 on, whose loss is not finite."""
    return [
        number
        for number, step in enumerate(training.steps)
        if not step.applied and step.loss is not None and not math.isfinite(step.loss)
    ]


def loses_its_own_steps(training: TrainingFacts) -> bool:
    """Whether no step is applied before the script itself would have ended. Scripts that take a few steps only are
    tried out, not trained."""
    own, first = training.script_steps, first_applied(training)
    lost = len(training.steps) if first is None else first
    return own is not None and FEWEST_STEPS <= own <= lost


def own_steps_applied(training: TrainingFacts) -> int | None:
    """How many of the steps that the script itself runs are applied; None where those are a few only, or not all were
    seen."""
    own = training.script_steps
    if own is None or not FEWEST_STEPS <= own <= len(training.steps):
        return None
    return sum(step.applied for step in training.steps[:own])


def loses_most_of_its_own_steps(training: TrainingFacts) -> bool:
    """Whether at most one in ten of the script's own steps is applied."""
    own, applied = training.script_steps, own_steps_applied(training)
    return own is not None and applied is not None and MOST_LOST * applied <= own


def allowed_by_growth(training: TrainingFacts) -> int:
    """How many steps since the first applied one a loss scale skips by design: the first one at each scale that has
    just grown."""
    interval = training.growth_interval
    since = len(training.steps) - (first_applied(training) or 0)
    return since // interval if interval is not None and interval >= SHORTEST_INTERVAL else 0


def reached_infinity(steps: tuple[StepFacts, ...]) -> bool:
    return any(step.loss_scale is not None and math.isinf(step.loss_scale) for step in steps)


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


def starts_at_zero(training: TrainingFacts) -> bool:
    """Whether the loss scale is 0 from the first step on, because the program asked for that."""
    return bool(training.dynamic) and training.initial_scale == 0


def step_divided_by_zero(training: TrainingFacts) -> int | None:
    """The number, from 1 on, of the first step that was applied at a loss scale of 0, None where no step was. Its
    gradients, all 0, were divided by 0, and its update wrote NaN into the weights."""
    applied = (number for number, step in enumerate(training.steps, 1) if step.applied and step.loss_scale == 0)
    return next(applied, None)
