"""Weights that no step moved while others did move: whether float32 has gradients for them that float16 has not.

Costs nothing where all weights moved, or none. Without `--reference`, which tells the same of three batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpdoctor.examiner.protocol.event_kinds import Reference
from mpdoctor.examiner.reference.measurement import ReferenceMeasurement

if TYPE_CHECKING:
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.replay.step_replay import StepReplay
    from mpdoctor.examiner.session import Session

HALF = "float16"  # bfloat16 has float32's smallest numbers
SHARE = 0.25  # of --budget


def tell_lost_gradients(session: Session, look: StepReplay, trainings: list[ObservedOptimizer]) -> None:
    """Report gradients that only float16 loses, by running the last batch of each training reported last in float16 and
    in float32. Sends nothing where the unmoved weights have no gradient in float32 either, as behind a dead ReLU."""
    for place, observed in enumerate(trainings if session.watch.saw((HALF,)) else ()):
        unmoved = {observed.keras.path(variable) for variable in observed.unmoved_weights()}
        if not unmoved:
            continue
        session.events.stage("comparing with float32")
        measurement = ReferenceMeasurement(look, session.watch, len(observed.steps), SHARE * session.request.budget)
        measurement.note(observed)
        facts = measurement.facts(observed)
        if any(variable.underflows and variable.path in unmoved for step in facts.steps for variable in step.variables):
            session.events.send(Reference(place - len(trainings), facts))
