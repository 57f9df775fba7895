"""What a short training looked like, in one word, by numbers. The first line that fits is the verdict:

failed         the training step raised an error.
inconclusive   fewer than 10 steps were seen; or every step of the last third was skipped and the loss scale, not yet at
               its floor of 1 (Keras 2) nor below 1 (Keras 3), was still on its first way down; or steps failed in a
               kernel of this device alone: CPUs add up float16 numbers in float16 and lose sums beyond 65504, and means
               of more than 65504 numbers, which a GPU, adding up in float32, does not.
not-finite     a weight is inf or NaN, or the loss of a step that was applied is, however few steps were seen; unless
               the loss scale had fallen to 0 before.
stuck          Keras 2: the scale lies at its floor of 1 and every step of the last third was skipped.
collapsing     Keras 3: the scale fell below 1 and every step of the last third was skipped; or it fell below 2^-14, so
               that a gradient of 1 is no normal float16 number any more; or it grew to inf.
overflowing    a step of the last third was skipped, and since the first applied step more were skipped than the scale
               may need to find its place: 5, and one a growth interval. Where a failing batch overflows without any
               loss scale, so that no scale will ever fit it: more than 1, and one a growth interval.
settling       a step of the last third was skipped, not more than that.
no-update      steps were applied and no trainable variable moved.
healthy        none of these: no skip in the last third, the loss finite, the weights moving.
"""

from __future__ import annotations

import math

from mpdoctor.facts.training import OperationFacts, StepFacts, TrainingFacts
from mpdoctor.finding import Probe, Verdict

FEWEST_STEPS = 10
# Measured without any defect: regression on targets of some hundreds skips the steps 0 to 6, 12, 19, 32 and 54; an LSTM
# with class weights 76, 85 and 113. Each time the gradients had grown and the scale was halved once more.
HALVINGS_TO_SETTLE = 5
HALVINGS_OF_THE_UNFIT = 1
SMALLEST_NORMAL = 2.0**-14  # of float16
DEPENDS_BEYOND = 0.5  # an exponent nearer to 0 than this is 0, measured on a batch


def probe_from_training(training: TrainingFacts) -> Probe:
    verdict, why = verdict_from_training(training)
    return Probe(training, verdict, why, _advice(training, verdict))


def verdict_from_training(training: TrainingFacts) -> tuple[Verdict, str]:
    """The verdict and, in words, the numbers that it rests on."""
    steps = training.steps
    if training.failure is not None:
        return Verdict.FAILED, f"{training.failed_in} raised {training.failure.exception}"
    if training.broken_by_device and training.broken_operation is not None:
        return Verdict.INCONCLUSIVE, _lost_by_device(training.broken_operation)
    not_finite = _not_finite(training)
    if len(steps) < FEWEST_STEPS and not not_finite:
        return (
            Verdict.INCONCLUSIVE,
            f"{_count(len(steps), 'step')} seen, {FEWEST_STEPS} are needed: {_how_to_get_more(training, FEWEST_STEPS)}",
        )
    if not_finite and all(step.loss_scale != 0 for step in steps):
        return Verdict.NOT_FINITE, not_finite
    late = steps[len(steps) - len(steps) // 3 :]
    late_skips = [step for step in late if not step.applied]
    if late_skips and len(late_skips) == len(late):
        return _never_settled(training)
    if _reached_infinity(steps):
        return Verdict.COLLAPSING, "the loss scale grew to inf, and every step is skipped from there on"
    if not_finite:
        return Verdict.NOT_FINITE, not_finite
    if (last := fallen_scale(training)) is not None:
        return Verdict.COLLAPSING, f"the loss scale fell to {last:.3g}, where gradients below 1 lose their digits"
    if late_skips:
        return _skips_go_on(training)
    if training.weights_changed is False and any(step.applied for step in steps):
        return Verdict.NO_UPDATE, "steps were applied, and no trainable variable moved"
    seen = training.scale_dependence
    depends = seen is not None and abs(seen.median) > DEPENDS_BEYOND
    but = "; but the size of the updates depends on the loss scale" if depends else ""
    return Verdict.HEALTHY, _settled_after(steps) + but


def fallen_scale(training: TrainingFacts) -> float | None:
    """The loss scale of the last step, if it fell so far that training goes on without its smaller gradients."""
    last = training.steps[-1].loss_scale
    has_fallen = training.floor is None and training.dynamic and last is not None and last < SMALLEST_NORMAL
    return last if has_fallen else None


def _never_settled(training: TrainingFacts) -> tuple[Verdict, str]:
    """Every step of the last third was skipped."""
    last = training.steps[-1].loss_scale or 0.0
    skipped = _count(sum(not step.applied for step in training.steps), "step")
    if training.floor is not None and last <= training.floor:
        return Verdict.STUCK, f"{skipped} skipped; the loss scale lies at its floor of {training.floor:g}"
    if training.floor is None and (last < 1 or math.isinf(last)):
        return Verdict.COLLAPSING, f"{skipped} skipped; the loss scale went to {last:.3g}"
    more = _how_to_get_more(training, _steps_to_the_end(training))
    return Verdict.INCONCLUSIVE, f"{skipped} skipped and the loss scale, now {last:g}, is still falling: {more}"


def _skips_go_on(training: TrainingFacts) -> tuple[Verdict, str]:
    """Some steps of the last third were skipped, and some were not."""
    first = next(i for i, step in enumerate(training.steps) if step.applied)
    since = training.steps[first:]
    skipped = sum(not step.applied for step in since)
    allowed = HALVINGS_OF_THE_UNFIT if _fits_no_scale(training) else HALVINGS_TO_SETTLE
    allowed += len(since) // training.growth_interval if training.growth_interval else 0
    if not skipped:
        return Verdict.SETTLING, f"{_count(first, 'step')} skipped before the first one was applied"
    text = f"{_count(skipped, 'step')} skipped since the first applied one"
    return (Verdict.OVERFLOWING if skipped > allowed else Verdict.SETTLING), text


def _not_finite(training: TrainingFacts) -> str:
    for number, step in enumerate(training.steps, 1):
        if step.applied and step.loss is not None and not math.isfinite(step.loss):
            return f"the loss is {step.loss} from step {number} on"
    if training.weights_finite is False:
        return "a trainable variable holds inf or NaN"
    return ""


def _reached_infinity(steps: tuple[StepFacts, ...]) -> bool:
    return any(step.loss_scale is not None and math.isinf(step.loss_scale) for step in steps)


def _settled_after(steps: tuple[StepFacts, ...]) -> str:
    skipped = sum(not step.applied for step in steps)
    if not skipped:
        return f"{_count(len(steps), 'step')}, none skipped"
    last = max(number for number, step in enumerate(steps, 1) if not step.applied)
    return f"{_count(skipped, 'step')} skipped until the loss scale had settled after step {last}"


def _fits_no_scale(training: TrainingFacts) -> bool:
    """Whether a failing batch is known to overflow without any loss scale."""
    gradient, loss = training.gradient_culprit, training.loss_culprit
    if training.culprit is not None:
        return True
    if loss is not None:
        return loss.where != "scaling"
    return gradient is not None and gradient.without_scale is True


def _lost_by_device(operation: OperationFacts) -> str:
    return (
        f"steps failed because this CPU adds up float16 numbers in float16: `{operation.name}` of "
        f"{operation.elements} numbers gives {operation.result} here, and {operation.in_float32:.4g} on a GPU, "
        "which adds up in float32; run it on a GPU (--device gpu) to know"
    )


def _steps_to_the_end(training: TrainingFacts) -> int:
    """So many that a scale which goes on falling is below 1 in the last third, in round numbers."""
    scale = training.steps[-1].loss_scale or 1.0
    falling = math.log2(scale) + 1 if 1 < scale < math.inf else 1
    return 10 * math.ceil(1.5 * (len(training.steps) + falling) / 10)


def _how_to_get_more(training: TrainingFacts, number: int) -> str:
    if training.ended == "budget":
        return "give it more time with --budget"
    if training.ended == "script":
        return "the script's own loop ended there; let it run longer"
    return f"ask for more with --steps {number}"


def _advice(training: TrainingFacts, verdict: Verdict) -> str:
    """What a loss-scale optimizer with a floor and a cap would have done otherwise."""
    if verdict is Verdict.COLLAPSING and _reached_infinity(training.steps):
        return "With a cap the loss scale would have stayed finite."
    if verdict is Verdict.COLLAPSING and training.floor is None:
        return "With a floor the loss scale would have stayed at 1; the steps would have been skipped all the same."
    return ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
