"""The one-word verdict on a short training; verdict_meanings.py gives the numbers behind it."""

from __future__ import annotations

import math

from mpdoctor.facts.training import OperationFacts, StepFacts, TrainingFacts
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Probe, Verdict
from mpdoctor.semantics.live.steps_taken import (
    allowed_by_growth,
    fallen_scale,
    first_applied,
    loses_its_own_steps,
    loses_most_of_its_own_steps,
    lost_losses,
    own_steps_applied,
    reached_infinity,
    skips_at_the_end,
    skips_beyond_float16,
    steps_at_the_end,
)
from mpdoctor.semantics.live.verdict_meanings import FEWEST_STEPS, HALVINGS_OF_THE_UNFIT, HALVINGS_TO_SETTLE

FEWEST_LOSSES = 3  # in a third of the steps
GROWN = 2.0  # times as large: from batch to batch a loss differs less
DEPENDS_BEYOND = 0.5  # an exponent nearer to 0 than this is 0, measured on a batch


def probe_from_training(training: TrainingFacts) -> Probe:
    verdict, why = verdict_from_training(training)
    return Probe(training, verdict, why, _advice(training, verdict))


def verdict_from_training(training: TrainingFacts) -> tuple[Verdict, str]:
    """The verdict and, in words, the numbers that it rests on."""
    not_finite = _not_finite(training)
    return (
        _too_little_seen(training, not_finite)
        or _numbers_lost(training, not_finite)
        or _scale_still_moving(training)
        or _verdict_of_updates(training)
    )


def finds_its_scale(training: TrainingFacts) -> bool:
    """Whether neither overflow nor an error stands in the way of what its numbers lose."""
    verdict, _ = verdict_from_training(training)
    return verdict in (Verdict.HEALTHY, Verdict.SETTLING, Verdict.NO_UPDATE, Verdict.INCONCLUSIVE)


def _too_little_seen(training: TrainingFacts, not_finite: str) -> tuple[Verdict, str] | None:
    """The verdict on a training that raised, that the device broke, or that was too short; None for others."""
    if training.failure is not None:
        return Verdict.FAILED, f"{training.failed_in} raised {training.failure.exception}"
    if training.broken_by_device and training.broken_operation is not None:
        return Verdict.INCONCLUSIVE, _lost_by_device(training.broken_operation)
    if not training.steps and training.ended == "steps":
        return Verdict.INCONCLUSIVE, "no optimizer took a step in the calls of the training step that were seen"
    if len(training.steps) < FEWEST_STEPS and not not_finite:
        return (
            Verdict.INCONCLUSIVE,
            f"only {count(len(training.steps), 'step')} seen, {FEWEST_STEPS} are needed: "
            f"{_how_to_get_more(training, FEWEST_STEPS)}",
        )
    return None


def _numbers_lost(training: TrainingFacts, not_finite: str) -> tuple[Verdict, str] | None:
    """The verdict on a training whose weights, loss or loss scale left the range of numbers; None for others. A loss
    scale of 0 or inf is reported rather than the loss that it spoils."""
    if not_finite and all(step.loss_scale != 0 for step in training.steps):
        return Verdict.NOT_FINITE, not_finite
    if skips_at_the_end(training) == len(steps_at_the_end(training)) > 0:
        return _never_settled(training)
    if reached_infinity(training.steps):
        return Verdict.COLLAPSING, "the loss scale grew to inf, and every step is skipped from then on"
    if not_finite:
        return Verdict.NOT_FINITE, not_finite
    return None


def _scale_still_moving(training: TrainingFacts) -> tuple[Verdict, str] | None:
    """The verdict on a training whose loss scale fell too far, or which still skipped steps in its last third; None for
    others."""
    late_skips = skips_at_the_end(training)
    if (last := fallen_scale(training)) is not None:
        return Verdict.COLLAPSING, f"the loss scale fell to {last:.3g}, where gradients below 1 lose their digits"
    if overflowing := _overflowing(training, late_skips > 0):
        return Verdict.OVERFLOWING, overflowing
    return (Verdict.SETTLING, _skipped_so_far(training)) if late_skips else None


def _verdict_of_updates(training: TrainingFacts) -> tuple[Verdict, str]:
    """The verdict on a training whose loss scale has settled."""
    if training.weights_changed is False and any(step.applied for step in training.steps):
        return Verdict.NO_UPDATE, "steps were applied, but no trainable variable changed"
    if loses_its_own_steps(training):
        return Verdict.SETTLING, _skipped_so_far(training) + _script_steps_clause(training)
    if loses_most_of_its_own_steps(training):
        skipped = (training.script_steps or 0) - (own_steps_applied(training) or 0)
        return Verdict.SETTLING, f"{skipped} of the {training.script_steps} steps that the script itself runs skipped"
    seen = training.scale_dependence
    depends = seen is not None and abs(seen.median) > DEPENDS_BEYOND
    but = "; but the size of the updates depends on the loss scale" if depends else ""
    return Verdict.HEALTHY, _settled_after(training.steps) + but + _but_its_loss_grew(training)


def _but_its_loss_grew(training: TrainingFacts) -> str:
    """A clause on a loss that grew, where the program has only one: those of a GAN grow by turns. "" where it did not
    grow, or may be less than 0."""
    losses = [step.loss for step in training.steps if step.loss is not None and math.isfinite(step.loss)]
    third = len(losses) // 3
    if training.name or third < FEWEST_LOSSES or min(losses) <= 0:
        return ""
    first, last = (sorted(some)[third // 2] for some in (losses[:third], losses[-third:]))
    return f"; but the loss grew, in the median from {first:.3g} to {last:.3g}" if last > GROWN * first else ""


def _never_settled(training: TrainingFacts) -> tuple[Verdict, str]:
    """The verdict on a training that skipped every step of its last third."""
    last = training.steps[-1].loss_scale or 0.0
    skipped = count(sum(not step.applied for step in training.steps), "step")
    if training.dynamic is False:
        return Verdict.STUCK, f"{skipped} skipped at the fixed loss scale of {last:g}"
    if training.floor is not None and last <= training.floor:
        return Verdict.STUCK, f"{skipped} skipped; the loss scale is at its floor of {training.floor:g}"
    if training.floor is None and (last < 1 or math.isinf(last)):
        return Verdict.COLLAPSING, f"{skipped} skipped; the loss scale went to {last:.3g}"
    more = _how_to_get_more(training, _steps_to_the_end(training))
    return Verdict.INCONCLUSIVE, f"{skipped} skipped, and the loss scale, now {last:g}, is still falling: {more}"


def _overflowing(training: TrainingFacts, late: bool) -> str:
    """Why it is overflowing, some steps having been applied; "" where it is not."""
    if skips_beyond_float16(training):
        return _gradients_leave_float16(training)
    by_growth, since = allowed_by_growth(training), training.steps[first_applied(training) or 0 :]
    skipped = sum(not step.applied for step in since)
    if late and skipped > HALVINGS_TO_SETTLE + by_growth:
        return _skipped_so_far(training)
    if _fits_no_scale(training) and max(skipped, len(lost_losses(training))) > HALVINGS_OF_THE_UNFIT + by_growth:
        return f"{_skipped_so_far(training)}; {_why_no_scale_fits(training)}"
    return ""


def _why_no_scale_fits(training: TrainingFacts) -> str:
    skipped = {number for number, step in enumerate(training.steps) if not step.applied}
    settled = first_applied(training) or 0
    if {number for number in skipped if number > settled} <= set(lost_losses(training)):
        return "the loss itself is inf or NaN in them, whatever the scale"
    return "they overflow even without a loss scale"


def _gradients_leave_float16(training: TrainingFacts) -> str:
    skipped = count(sum(not step.applied for step in training.steps), "step")
    own = _script_steps_clause(training) if loses_its_own_steps(training) else ""
    if training.floor is not None:
        at_floor = len(skips_beyond_float16(training))
        return f"{skipped} skipped, {at_floor} of them at the loss scale's floor of {training.floor:g}{own}"
    return f"{skipped} skipped{own}; the loss scale is {training.steps[-1].loss_scale:.3g}, below 1"


def _skipped_so_far(training: TrainingFacts) -> str:
    first = first_applied(training) or 0
    skipped = sum(not step.applied for step in training.steps[first:])
    if not skipped:
        return f"{count(first, 'step')} skipped before the first one was applied"
    return f"{count(skipped, 'step')} skipped since the first applied one"


def _script_steps_clause(training: TrainingFacts) -> str:
    return f", including all {training.script_steps} that the script itself runs"


def _not_finite(training: TrainingFacts) -> str:
    broken = [step.loss is not None and not math.isfinite(step.loss) for step in training.steps]
    first = next((number for number, step in enumerate(training.steps) if broken[number] and step.applied), None)
    if first is not None:
        loss = training.steps[first].loss
        if not all(broken[first:]):
            return f"the loss is {loss} at step {first + 1}, and the step was applied"
        finite = [number for number, is_broken in enumerate(broken[:first]) if not is_broken]
        return f"the loss is {loss} from step {finite[-1] + 2 if finite else 1} on"
    if training.weights_finite is False:
        return "a trainable variable holds inf or NaN"
    return ""


def _settled_after(steps: tuple[StepFacts, ...]) -> str:
    skipped = sum(not step.applied for step in steps)
    if not skipped:
        return f"{count(len(steps), 'step')}, none skipped"
    last = max(number for number, step in enumerate(steps, 1) if not step.applied)
    return f"{count(skipped, 'step')} skipped until the loss scale had settled after step {last}"


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
        f"steps failed because this CPU sums float16 numbers in float16: `{operation.name}` of "
        f"{operation.elements} numbers gives {operation.result} here and {operation.in_float32:.4g} in "
        "float32, in which a GPU sums; to be sure, run it on a GPU (--device gpu)"
    )


def _steps_to_the_end(training: TrainingFacts) -> int:
    """A round number of steps after which a scale that keeps falling is below 1 in the last third."""
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
    """A sentence on what a loss-scale optimizer with a floor and a cap would have changed; "" for nothing."""
    if verdict is Verdict.COLLAPSING and reached_infinity(training.steps):
        return "With a cap the loss scale would have stayed finite."
    if verdict is Verdict.COLLAPSING and training.floor is None and training.initial_scale != 0:
        return "A floor would have kept the loss scale at 1, but the steps would still be skipped."
    return ""
