"""Runs the same steps once more with the layers in float32 that healed the failing batches: does the training heal?

A batch that is finite is not yet a cure: the loss scale has a way to go, weights grow, other batches come. Variables,
policies and traces are restored afterwards.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List

from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.keras.in_place import float32_in_place
from mpdoctor.examiner.replay.variable_snapshot import put_back, snapshot_of_variables
from mpdoctor.examiner.second_training.first_values import FirstValues
from mpdoctor.examiner.second_training.new_traces import traced_anew
from mpdoctor.examiner.second_training.played_steps import PlayedStep, PlayedSteps, learning_rates, takes_from_data_set
from mpdoctor.examiner.second_training.seen_layers import SeenLayers
from mpdoctor.examiner.trials.one_trial import Case, TrialRunner
from mpdoctor.facts.training import SecondTrainingFacts, StepFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.replay.step_replay import StepReplay
    from mpdoctor.examiner.session import Session
    from mpdoctor.examiner.trials.units import Unit

    Taken = Dict[ObservedOptimizer, List[StepFacts]]


SHARE = 0.5  # of --budget, counted from the end of the first step, as that is


class NotTried(Exception):
    """The training cannot be run once more. The text is why, a clause."""


class SecondTraining:
    """The second run of one training. `is_running`: whether the current steps are those of the second run."""

    def __init__(self, session: Session, look: StepReplay) -> None:
        self._session, self._look = session, look
        self._played = PlayedSteps()
        self._first: FirstValues | None = None
        self._rates: Any = None  # learning rates that were set when the step at hand began
        self.is_running = False

    # --- during the first training --------------------------------------------------------------------------------
    def begin(self) -> None:
        """Called before the first step of the training."""
        if self._first is None and self._session.request.second_training:
            self._first = FirstValues()

    def begin_step(self, observed: list[ObservedOptimizer]) -> None:
        """Called before each call that may be a step."""
        if self._is_kept:
            self._rates = learning_rates(optimizer.innermost for optimizer in observed)

    def note(self, owner: object, run: Callable[..., object], given: object, moved: bool) -> None:
        """`run(given)` was run; `moved`: whether an optimizer took a step in it."""
        if self._is_kept:
            self._played.note(PlayedStep(owner, run, given, self._rates or [], moved))

    def give_up(self, problem: str) -> None:
        """There can be none, for this reason."""
        self._played.give_up(problem)
        if self._first is not None:
            self._first.end()

    @property
    def _is_kept(self) -> bool:
        return self._first is not None and not self._played.problem

    # --- the second one -------------------------------------------------------------------------------------------
    def train(
        self, healed: dict[ObservedOptimizer, tuple[Unit, ...]], call: Callable[[PlayedStep], None]
    ) -> dict[ObservedOptimizer, SecondTrainingFacts]:
        """Train again with all these layers in float32; the result for each of these optimizers. `call(step)` runs a
        step."""
        began = time.monotonic()
        units = [unit for of_optimizer in healed.values() for unit in of_optimizer]
        paths = tuple(dict.fromkeys(unit.path for unit in units))
        try:
            facts = self._trained(healed, units, call)
        except NotTried as reason:
            return {optimizer: SecondTrainingFacts(paths, not_tried=str(reason)) for optimizer in healed}
        seconds = time.monotonic() - began
        return {
            optimizer: replace(training_facts, layers=paths, seconds=seconds)
            for optimizer, training_facts in facts.items()
        }

    def _trained(
        self,
        healed: dict[ObservedOptimizer, tuple[Unit, ...]],
        units: list[Unit],
        call: Callable[[PlayedStep], None],
    ) -> dict[ObservedOptimizer, SecondTrainingFacts]:
        """The second training. Raises NotTried."""
        with self.from_the_first_weights([layer for unit in units for layer in unit.layers]) as played:
            taken, ended = self._steps(played, list(healed), [unit.layer for unit in units], call)
            return {optimizer: self._facts(optimizer, steps, ended) for optimizer, steps in taken.items()}

    @contextmanager
    def from_the_first_weights(self, layers: Iterable[KerasLayer]) -> Iterator[PlayedSteps]:
        """What the training ran, to be run once more: while it is entered, variables begin as before the first step,
        these layers compute in float32 and every function is traced anew. Raises NotTried."""
        self._refuse()
        now = snapshot_of_variables()
        self.is_running = True
        try:
            with ExitStack() as stack:
                stack.callback(put_back, now)
                stack.enter_context(self._session.mender.at_rest())
                stack.enter_context(float32_in_place(self._session.hooked_keras, layers))
                stack.enter_context(traced_anew())
                assert self._first is not None
                unknown = self._first.put_back()
                if unknown:
                    raise NotTried(f"nobody knows what the variable `{unknown[0]}` began with")
                yield self._played
        finally:
            self.is_running = False

    def _refuse(self) -> None:
        """Raises NotTried where it is known beforehand that the training cannot be repeated."""
        if self._played.problem:
            raise NotTried(self._played.problem)
        if self._first is None or not self._played.all:
            raise NotTried("the weights that it began with were not kept")
        for step in self._played.firsts():
            try:
                reads_data_set = step.is_function and takes_from_data_set(step)
            except Exception as error:  # of the user's function, which is traced for it once more
                raise NotTried(f"the step cannot be traced once more: {first_line(error)}") from error
            if reads_data_set:
                raise NotTried("the step takes its batches from a data set of its own, whose order nobody knows")

    def _steps(
        self,
        played: PlayedSteps,
        optimizers: list[ObservedOptimizer],
        layers: list[KerasLayer],
        call: Callable[[PlayedStep], None],
    ) -> tuple[Taken, str]:
        """(the steps of each optimizer, "steps" or "budget"). Raises NotTried."""
        seconds, first_step_at = SHARE * self._session.request.budget, 0.0
        taken: Taken = {optimizer: [] for optimizer in optimizers}
        for optimizer in optimizers:
            optimizer.unread()
        with SeenLayers(self._session.layer_hooks, layers) as seen:
            for step in played.all:
                seen.counts = played.takes_steps(step.owner)
                try:
                    call(step)
                except Exception as error:  # of the user's step: two dtypes meet
                    raise NotTried(f"with these layers in float32 the step raises: {first_line(error)}") from error
                for optimizer in optimizers:
                    taken[optimizer] += optimizer.steps_from_record()
                first_step_at = first_step_at or time.monotonic()
                if time.monotonic() - first_step_at > seconds:
                    break
        if seen.problem:
            raise NotTried(seen.problem)
        spent = step is not played.all[-1]
        return taken, "budget" if spent else "steps"

    def _facts(self, observed: ObservedOptimizer, steps: list[StepFacts], ended: str) -> SecondTrainingFacts:
        steps = steps[: len(observed.steps)]
        applied = any(step.applied for step in steps)
        return SecondTrainingFacts(
            steps=tuple(steps),
            ended=ended,
            weights_changed=observed.has_moved() if applied else None,
            weights_finite=observed.weights_finite(),
            failing_batch_finite=self._failing_batch_finite(observed),
        )

    def _failing_batch_finite(self, observed: ObservedOptimizer) -> bool | None:
        failing = observed.failing
        if failing is None:
            return None
        with self._look.repeating() as catchers:
            catchers[observed].stops = observed.steps_a_call > 1
            set_scale = observed.set_scale if observed.can_set_scale else None
            runner = TrialRunner(observed.keras, self._session.layer_hooks, catchers[observed], set_scale)
            trial = runner.run((), Case(failing.repeat, snapshot_of_variables()), scale=1.0)
        return None if trial.error else trial.is_finite
