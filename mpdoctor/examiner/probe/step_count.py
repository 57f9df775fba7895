"""Counts the steps that each call of the program adds to its optimizers, and ends the training when they are enough."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from mpdoctor.examiner.probe.earlier_calls import EarlierCalls

if TYPE_CHECKING:
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.probe.training_under_way import TrainingUnderWay


CALLS_A_STEP = 20  # train functions that may run for one step of the optimizer, as with accumulated gradients
# Train functions that may run before an optimizer takes its first step: the program may update the weights itself.
CALLS_WITHOUT_A_STEP = 128


class Again(NamedTuple):
    """`run(given)` runs a step of this owner's once more: of a training call, or of a tf.function."""

    owner: object
    run: Callable[..., object]
    given: Any


class StepCount:
    """`calls`: how many calls of a train function, or of a loop's own one, have ended. `earlier`: those that took the
    last steps, in a program that takes gradients by anything but variables."""

    def __init__(self, training: TrainingUnderWay) -> None:
        self._training = training
        self.calls = 0
        self.earlier = EarlierCalls()
        self._reported = self._first_step_at = 0.0
        self._since: list[Callable[[], object]] = []  # what was run since the last step, as gradients are added up

    @property
    def has_stepped(self) -> bool:
        return bool(self._first_step_at)

    def after_step(
        self, repeat: Callable[[], object] | None = None, given: object = None, again: Again | None = None
    ) -> None:
        """`repeat` runs what was just run once more, eagerly, and `again` as it was run; None where only the user's own
        code can. `given`: the batch."""
        training = self._training
        if training.is_repeating:
            return
        self.calls += 1
        self._since = [*self._since[-CALLS_A_STEP:], repeat] if repeat is not None else []
        moved = [observed for observed in training.optimizers.all if self._take_rows(observed, repeat, given)]
        if again is not None:
            training.second.note(*again, moved=bool(moved))
        elif moved:
            training.second.give_up("an eager loop cannot be run once more")
        now = time.monotonic()
        if moved:
            self._since = []
            self._note_steps(moved, now)
            for observed in moved:
                if training.session.tapes.took_inner:
                    self.earlier.note(observed, repeat, given)
                if observed.failing is not None:
                    observed.failing.note_batch(given, repeat)
        if self._rounds() >= training.wanted or self.calls >= self._most_calls():
            training.enough("steps")
            return
        if not self._first_step_at:  # the budget is for steps, not for compiling the first one
            self._first_step_at = now
            if training.is_loop:
                training.graph_stop.allow(training.session.request.budget)
        if now - self._first_step_at > training.session.request.budget:
            training.enough("budget")
            return
        if training.is_loop and repeat is None:
            training.replay.begin_trial(moved)

    def _most_calls(self) -> int:
        has_moved = any(observed.seen for observed in self._training.optimizers.all)
        return CALLS_A_STEP * self._training.wanted if has_moved else CALLS_WITHOUT_A_STEP

    def _take_rows(self, observed: ObservedOptimizer, repeat: Callable[[], object] | None, given: object) -> bool:
        """Read the rows that the last call recorded for one optimizer. Whether it took a step."""
        rows = observed.unread()
        observed.seen += len(rows)
        if not rows or self._training.replay.takes_step(observed):
            return False
        observed.repeat, observed.given = repeat, given
        observed.repeat_all = _all_of(self._since) if len(self._since) > 1 else repeat
        observed.last_call = self.calls
        observed.take(rows)
        return True

    def _note_steps(self, moved: list[ObservedOptimizer], now: float) -> None:
        training = self._training
        stepped = training.optimizers.active
        for observed in moved:
            observed.note_growth()
            if observed in stepped:
                training.replay.look_for_culprit(observed, training.wanted)
            if training.reference is not None:
                training.reference.note(observed)
        training.replay.compare_foreign_scales([observed for observed in moved if observed in stepped])
        if now - self._reported > 0.1:
            self._reported = now
            training.session.events.steps(min(self._rounds(), training.wanted), training.wanted)

    def own_steps(self, observed: ObservedOptimizer, ended: str) -> int | None:
        """How many steps of this optimizer the script itself takes; None where that is not known."""
        if ended == "script":
            return observed.seen
        batches = None if self._training.own_batches is None else self._training.own_batches.in_all
        return None if batches is None or not self.calls else round(batches * observed.seen / self.calls)

    def _rounds(self) -> int:
        return self._training.optimizers.rounds(self.calls)


def _all_of(runs: list[Callable[[], object]]) -> Callable[[], None]:
    def repeat() -> None:
        for run in runs:
            run()

    return repeat
