"""`--reference` during a training: keeps steps while it runs, and compares them with float32 at its end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mpdoctor.examiner.protocol.event_kinds import Reference
from mpdoctor.examiner.reference.divergence import RUNS, DivergenceSearch
from mpdoctor.examiner.reference.measurement import ReferenceMeasurement
from mpdoctor.examiner.reference.twin_training import TwinTraining
from mpdoctor.facts.reference import ReferenceFacts

if TYPE_CHECKING:
    from typing import Callable

    from mpdoctor.examiner.examination import Examination
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.replay.step_replay import StepReplay
    from mpdoctor.examiner.second_training.played_steps import PlayedStep
    from mpdoctor.examiner.second_training.second_training import SecondTraining
    from mpdoctor.facts.divergence import DivergenceFacts
    from mpdoctor.facts.failure import FailureFacts


class ReferenceRun:
    """`--reference` for a training of `steps` steps."""

    def __init__(self, examination: Examination, look: StepReplay, second: SecondTraining, steps: int) -> None:
        self._examination, self._second = examination, second
        self._measurement = ReferenceMeasurement(look, examination.layer_hooks, steps, examination.request.budget)

    def note(self, observed: ObservedOptimizer) -> None:
        """Note a step of this optimizer."""
        self._measurement.note(observed)

    def tell(
        self,
        told: list[ObservedOptimizer],
        failure: FailureFacts | None,
        optimizers: list[ObservedOptimizer],
        call: Callable[[PlayedStep], None],
    ) -> None:
        """Report the comparison for the trainings that were reported last. `optimizers` are all of the program's, and
        `call` runs a step of the training once more."""
        failed = None if failure is None else ReferenceFacts(not_measured="the training failed")
        if failed is None:
            self._examination.events.stage("comparing with float32")
        in_tf32 = any(device.uses_tf32 for device in self._examination.devices())
        measured = [failed or replace(self._measurement.facts(observed), in_tf32=in_tf32) for observed in told]
        for place, facts in enumerate(measured):  # first: a process that hangs or dies in the long way has told them
            self._examination.events.send(Reference(place - len(told), facts))
        if failed is None and self._examination.request.second_training:
            for place, (observed, facts) in enumerate(zip(told, measured)):
                if not facts.not_measured:
                    self._examination.events.stage("training in float32 as well")
                    facts = replace(facts, divergence=self._divergence(observed, facts, optimizers, call))
                    self._examination.events.send(Reference(place - len(told), facts))

    def _divergence(
        self,
        observed: ObservedOptimizer,
        reference: ReferenceFacts,
        optimizers: list[ObservedOptimizer],
        call: Callable[[PlayedStep], None],
    ) -> DivergenceFacts:
        seconds = self._examination.request.budget / RUNS
        training = TwinTraining(self._examination.layer_hooks, self._second, call, optimizers, reference.dtype, seconds)
        return DivergenceSearch(observed.keras, training, observed, reference).facts()
