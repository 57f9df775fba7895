"""Weights that no step moved while others did move, and a fixed loss scale that is low: whether float32 has gradients
for them that float16 has not.

Costs nothing where all weights moved, or none, at another loss scale. Without `--reference`, which tells the same of
three batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpdoctor.examiner.protocol.event_kinds import Reference
from mpdoctor.examiner.reference.measurement import ReferenceMeasurement
from mpdoctor.facts.reference import LOW_SCALE, ReferenceFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.examination import Examination
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.replay.step_replay import StepReplay

HALF = "float16"  # bfloat16 has float32's smallest numbers
SHARE = 0.25  # of --budget
TURNED = 0.9  # cosine of the whole gradient to float32's on the one batch: below it nearly half points elsewhere


def tell_lost_gradients(examination: Examination, look: StepReplay, trainings: list[ObservedOptimizer]) -> None:
    """Report gradients that only float16 loses, by running the last batch of each training reported last in float16 and
    in float32. Sends nothing where the unmoved weights have no gradient in float32 either, as behind a dead ReLU, or
    where a low loss scale loses little."""
    for place, observed in enumerate(trainings if examination.layer_hooks.saw((HALF,)) else ()):
        unmoved = {observed.keras.path(variable) for variable in observed.unmoved_weights()}
        is_low = _has_low_scale(observed)
        if not unmoved and not is_low:
            continue
        examination.events.stage("comparing with float32")
        measurement = ReferenceMeasurement(
            look, examination.layer_hooks, len(observed.steps), SHARE * examination.request.budget
        )
        measurement.note(observed)
        facts = measurement.facts(observed)
        lost = {variable.path for step in facts.steps for variable in step.variables if variable.underflows}
        if lost & unmoved or (lost and is_low and _points_elsewhere(facts)):
            examination.events.send(Reference(place - len(trainings), facts))


def _has_low_scale(observed: ObservedOptimizer) -> bool:
    """Whether its loss scale is fixed, and far below the default."""
    scale = observed.fixed_scale
    return scale is not None and scale <= LOW_SCALE and any(step.applied for step in observed.steps)


def _points_elsewhere(facts: ReferenceFacts) -> bool:
    """Whether the gradient that float16 leaves is not float32's."""
    return any(step.cosine is not None and step.cosine < TURNED for step in facts.steps)
