"""The result of a second training with a remedy: whether the training is healthy, and not only its batches."""

from __future__ import annotations

from dataclasses import replace

from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.training import SecondTrainingFacts, TrainingFacts
from mpdoctor.finding import SecondProbe, Verdict
from mpdoctor.semantics.live.verdict import verdict_from_training

NO_CONTRADICTION = (Verdict.HEALTHY, Verdict.INCONCLUSIVE)


def second_probe(training: TrainingFacts) -> SecondProbe | None:
    """The probe of the second training; None where there was none."""
    second = training.second
    if second is None or second.not_tried:
        return None
    return SecondProbe(*verdict_from_training(_as_training(training, second)))


def _as_training(first: TrainingFacts, second: SecondTrainingFacts) -> TrainingFacts:
    """The second training as facts of a first one. Nothing was searched for a cause in it."""
    return replace(
        first,
        steps=second.steps,
        ended=second.ended,
        weights_changed=second.weights_changed,
        weights_finite=second.weights_finite,
        culprit=None,
        loss_culprit=None,
        gradient_culprit=None,
        scale_dependence=None,
        standstill=None,
        growth=None,
        remedies=(),
        second=None,
        hidden_overflow=None,
    )


def contradiction(training: TrainingFacts) -> str:
    """The result of the second training where it contradicts the batches, a clause; "" where it does not."""
    probe, second = second_probe(training), training.second
    if probe is None or second is None:
        return ""
    on_its_way = probe.verdict is Verdict.SETTLING and not _skips_since_first_applied(second)
    if probe.verdict not in NO_CONTRADICTION and not on_its_way:
        skipped = "" if probe.verdict is Verdict.NOT_FINITE else skipped_of(second)
        return f"in a second training, {skipped} are still skipped" if skipped else f"in a second training, {probe.why}"
    if second.failing_batch_finite is False:
        return "in a second training, the batch that failed is still not finite"
    return ""


def remedies_to_report(training: TrainingFacts) -> tuple[RemedyFacts, ...]:
    """The remedies that were tried; one that the second training contradicts counts as failed."""
    why = contradiction(training)
    if not why:
        return training.remedies
    return tuple(
        replace(remedy, tried="failed", reason=f"finite on these batches; {why}")
        if remedy.tried == "healed" and remedy.kind == "float32-layers"
        else remedy
        for remedy in training.remedies
    )


def trained_again(training: TrainingFacts) -> str:
    """A sentence on a second training that contradicts nothing; "" where there was none."""
    probe, second = second_probe(training), training.second
    if second is None:
        return ""
    if probe is None:
        return f"(Not trained again: {second.not_tried}.)"
    if probe.verdict is Verdict.INCONCLUSIVE:
        return f"In a second training with it, there is no verdict yet: {probe.why}."
    count, skipped = len(second.steps), skipped_of(second)
    if not skipped:
        return f"In a second training with it, none of {count} steps is skipped."
    last = second.steps[-1].loss_scale
    scale = "" if last is None else f", and the loss scale ends at {last:g}"
    is_one = sum(not step.applied for step in second.steps) == 1
    are = "is skipped," if is_one else "are skipped, the last of them"
    return f"In a second training with it, {skipped} {are} step {_last_skip(second)}{scale}."


def skipped_of(second: SecondTrainingFacts) -> str:
    """ "14 of 50 steps"; "" for none."""
    skipped = sum(not step.applied for step in second.steps)
    return f"{skipped} of {len(second.steps)} steps" if skipped else ""


def _skips_since_first_applied(second: SecondTrainingFacts) -> bool:
    """Whether a step was skipped after the first applied one, or none was applied: the loss scale did not just fall to
    its place."""
    applied = [step.applied for step in second.steps]
    return not all(applied[applied.index(True) :]) if True in applied else True


def _last_skip(second: SecondTrainingFacts) -> int:
    return max(number for number, step in enumerate(second.steps, 1) if not step.applied)
