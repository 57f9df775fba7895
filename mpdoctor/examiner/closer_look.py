"""A closer look at a training that goes on: a failing step repeated with the layers observed, and one step repeated at
two loss scales. Costs nothing on the steps that don't need it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from mpdoctor.examiner.replay import LayerObserver, culprit_from_replay
from mpdoctor.examiner.scales import (
    PAIRS,
    GradientCatcher,
    Norms,
    dependence_from_norms,
    dependence_from_replays,
    mean_of_norms,
)
from mpdoctor.facts.training import CulpritFacts, ScaleDependenceFacts, StepFacts

TRIAL_STEPS = 4  # of an eager loop, spent on two scales


class CloserLook:
    """What repeated steps showed.

    `training` is the Training that is looked at; `not_looked` holds (code, reason) of what could not be looked at.
    `holds_weights` is true while steps run that must move nothing.
    """

    def __init__(self, training: Any) -> None:
        self._training = training
        self.holds_weights = False
        self.culprit: CulpritFacts | None = None
        self.dependence: ScaleDependenceFacts | None = None
        self.not_looked: list[tuple[str, str]] = []
        self._observer: LayerObserver | None = None
        self._trial: EagerTrial | None = None

    @property
    def repeats(self) -> bool:
        """Whether the probe itself is repeating a step; the steps of a trial are the user's own loop."""
        return self.holds_weights and self._trial is None

    # --- the first layer whose output is not finite -----------------------------------------------------------------
    def look_for_culprit(self, steps: list[StepFacts], wanted: int) -> None:
        """After a step whose loss is not finite, or that was skipped late in the training."""
        number = len(steps) - 1
        if self._observer is not None:
            self.culprit = self._observer.culprit(number) or self.culprit
            self._observer.__exit__()
            self._observer = None
        last = steps[-1]
        bad_loss = last.loss is not None and not math.isfinite(last.loss)
        late_skip = not last.applied and 3 * len(steps) > 2 * wanted
        if self.culprit is not None or not (bad_loss or late_skip):
            return
        watch, repeat = self._training.session.watch, self._training.repeat
        if repeat is None:  # a loop that only the user's own code can drive: watch its next step
            self._observer = LayerObserver(watch)
            self._observer.__enter__()
            return
        try:
            with self._repeating(), self._training.weights_of_last_step():
                self.culprit = culprit_from_replay(watch, repeat, number)
        except Exception as error:  # the user's step, which may be fit for graphs only
            self.not_looked.append(("MP904", f"the failing step cannot be repeated eagerly: {_first_line(error)}"))

    # --- one step at two loss scales --------------------------------------------------------------------------------
    def compare_scales(self, steps: list[StepFacts]) -> None:
        """The last batch at two scales. Only after a training whose scale found its place."""
        training = self._training
        settled = steps and steps[-1].applied and self.culprit is None
        if not settled or training.repeat is None or not training.can_set_scale or self.dependence is not None:
            return
        training.session.events.stage("comparing two loss scales")
        kept = _kept(training.model)

        def from_the_same_state() -> None:
            _restore(kept)
            tf.random.set_seed(1)
            training.repeat()

        try:
            with self._repeating() as catcher:
                measured = dependence_from_replays(training.set_scale, from_the_same_state, catcher)
        except Exception as error:  # the user's step, which may be fit for graphs only
            self.not_looked.append(("MP912", f"the step cannot be repeated eagerly: {_first_line(error)}"))
            return
        if measured is not None:
            self._note_dependence(*measured)

    def begin_trial(self) -> None:
        """Two scales in an eager loop: its next steps are spent on them."""
        self._trial = EagerTrial(self._training.set_scale, self._repeating())

    def takes_step(self) -> bool:
        """Whether the step that just ended belongs to a trial of two scales, and not to the training."""
        if self._trial is None:
            return False
        measured = self._trial.go_on()
        if measured is not None:
            self._trial = None
            self._note_dependence(*PAIRS[0], *measured)
        return True

    def _note_dependence(self, low: float, high: float, at_low: Norms, at_high: Norms) -> None:
        calls = self._training.session.scale_calls
        unscaled = None if self._training.keras.is_keras3 else calls["unscaled"]
        self.dependence = dependence_from_norms(low, high, at_low, at_high, calls["scaled"], unscaled)

    # --- repeating --------------------------------------------------------------------------------------------------
    @contextmanager
    def _repeating(self) -> Iterator[GradientCatcher]:
        """Steps in here run eagerly, their gradients move nothing, and scale, counters, seeds and statistics are put
        back as they were."""
        training = self._training
        moved = [*training.scale_variables(), *training.keras.step_variables(training.optimizer)]
        kept = _kept(training.model) + [(v, tf.identity(v)) for v in moved]
        eagerly = tf.config.functions_run_eagerly()
        self.holds_weights = True
        tf.config.run_functions_eagerly(True)
        try:
            with GradientCatcher(training.keras, training.optimizer) as catcher:
                yield catcher
        finally:
            tf.config.run_functions_eagerly(eagerly)
            self.holds_weights = False
            _restore(kept)
            training.forget_rows()


class EagerTrial:
    """An eager loop at two scales, which only the user's code can drive: its next steps run at a low and a high scale
    in turn and change nothing. Their batches differ, which moves an exponent far less than a defect does."""

    def __init__(self, set_scale: Callable[[float], None], repeating: Any) -> None:
        self._set_scale, self._repeating = set_scale, repeating
        self._catcher = repeating.__enter__()
        self._seen: tuple[list[Norms], list[Norms]] = ([], [])
        self._set_scale(PAIRS[0][0])

    def go_on(self) -> tuple[Norms, Norms] | None:
        """After one step of the user's loop; the mean norms at both scales when there were enough."""
        done = len(self._seen[0]) + len(self._seen[1]) + 1
        self._seen[(done - 1) % 2].append(self._catcher.take())
        if done < TRIAL_STEPS:
            self._set_scale(PAIRS[0][done % 2])
            return None
        self._repeating.__exit__(None, None, None)
        return mean_of_norms(self._seen[0]), mean_of_norms(self._seen[1])


def _kept(model: Any) -> list[tuple[Any, Any]]:
    """The variables that a step moves besides the weights, with their values: statistics, seeds, metrics."""
    return [(v, tf.identity(v)) for v in getattr(model, "variables", ()) if not v.trainable and v.dtype != "string"]


def _restore(kept: list[tuple[Any, Any]]) -> None:
    for variable, value in kept:
        variable.assign(value)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]
