"""Keeps three steps of a training to compare with float32, each with its batch and the state it started from.

The first, one at which the loss scale has settled, and the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from mpdoctor.examiner.reference.twin_steps import KeptStep
from mpdoctor.examiner.replay.variable_snapshot import snapshot_of_variables

if TYPE_CHECKING:
    from mpdoctor.facts.reference import Moment
    from mpdoctor.facts.training import StepFacts

    Repeat = Callable[[], object]


class KeptSteps:
    """The kept steps of one optimizer, in a training of `wanted` steps. The state is that after the step: the weights
    have moved once since the batch was used."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._first: KeptStep | None = None
        self._settled: KeptStep | None = None

    def note(self, steps: list[StepFacts], repeat: Repeat | None, scale: float | None) -> None:
        """Keep the step that was just taken, if it is one of the three."""
        if repeat is None:
            return
        if self._first is None:
            self._first = _kept("first", steps, repeat, scale)
        elif steps[-1].applied and (not steps[-2].applied or self._is_halfway(steps)):
            self._settled = _kept("settled", steps, repeat, scale)

    def _is_halfway(self, steps: list[StepFacts]) -> bool:
        """Whether half of the steps are over. If none was skipped until then, the scale was settled from the start."""
        return self._settled is None and len(steps) >= self._wanted // 2

    def all(self, steps: list[StepFacts], repeat: Repeat | None, scale: float | None) -> list[KeptStep]:
        """The kept steps and the last step, with the values that it has now."""
        if repeat is None:
            return []
        late = _kept("late", steps, repeat, scale)
        return [kept for kept in (self._first, self._settled) if kept is not None and kept.step != late.step] + [late]


def _kept(moment: Moment, steps: list[StepFacts], repeat: Repeat, scale: float | None) -> KeptStep:
    return KeptStep(moment, len(steps) - 1, scale, repeat, snapshot_of_variables())
