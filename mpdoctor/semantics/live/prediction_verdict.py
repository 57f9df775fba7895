"""The verdict on a program that only predicts or evaluates: nothing was trained, so its outputs are judged."""

from __future__ import annotations

from dataclasses import replace

from mpdoctor.facts.training import PredictionFacts, TrainingFacts
from mpdoctor.facts.written_numbers import magnitude_text
from mpdoctor.finding import Probe, Verdict
from mpdoctor.semantics.live.broken_operations import broke
from mpdoctor.semantics.live.second_training import second_probe
from mpdoctor.semantics.live.verdict import probe_from_training

EXCUSED = {
    "data": ", as the data do",
    "constant": ", because a constant of the model is inf or NaN",
    "range": ", and does so in float32 too",
}


def probe_from_facts(training: TrainingFacts) -> Probe:
    """The probe of a training, or of predictions where nothing was trained."""
    if training.prediction is None:
        return replace(probe_from_training(training), second=second_probe(training))
    return Probe(training, *verdict_from_prediction(training, training.prediction))


def verdict_from_prediction(training: TrainingFacts, seen: PredictionFacts) -> tuple[Verdict, str]:
    """The verdict and, in words, the numbers that it rests on."""
    subject = f"`{seen.called}` gave"
    operation = training.broken_operation
    if not seen.nonfinite:
        finite = "1 finite number" if seen.numbers == 1 else f"{seen.numbers:,} finite numbers"
        return Verdict.HEALTHY, f"not trained; {subject} {finite}"
    bad = f"{subject} {seen.nonfinite:,} of {seen.numbers:,} numbers as inf or NaN"
    if seen.excuse and not (seen.excuse == "range" and seen.nan):
        return Verdict.HEALTHY, f"not trained; {bad}{EXCUSED[seen.excuse]}"
    if training.broken_by_device and operation is not None:
        return Verdict.INCONCLUSIVE, (
            f"not trained; {bad}, because this CPU sums float16 numbers in float16: `{operation.name}` of "
            f"{operation.elements} numbers gives {operation.result} here and "
            f"{magnitude_text(operation.in_float32 or 0)} in float32, in which a GPU sums; to be sure, run it on a GPU "
            "(--device gpu)"
        )
    why = EXCUSED.get(seen.excuse, f": {broke(operation)}" if operation is not None else "")
    return Verdict.NOT_FINITE, f"not trained; {bad}{why}"
