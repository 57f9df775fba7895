"""A closer look at a training that goes on: a failing step repeated with the layers observed, and one step repeated at
two loss scales. Costs nothing on the steps that don't need it."""

from __future__ import annotations

import functools
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, ContextManager, Iterator

import tensorflow as tf

from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.replay.culprit_search import CulpritHunt
from mpdoctor.examiner.replay.scale_derivative import Slope
from mpdoctor.examiner.replay.standstill import look_at_standstill
from mpdoctor.examiner.replay.step_observer import Enough
from mpdoctor.examiner.replay.two_scales import (
    GradientCatcher,
    Passage,
    dependence_from_passages,
    dependence_from_replays,
    mean_of_passages,
    pairs_from_scale,
)
from mpdoctor.examiner.replay.variable_snapshot import variables_put_back
from mpdoctor.facts.training import ScaleDependenceFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasOptimizer, KerasVariable
    from mpdoctor.examiner.probe.observed_optimizer import Learner
    from mpdoctor.examiner.probe.training import Training


TRIAL_STEPS = 4  # of an eager loop, spent on two scales
EQUAL_BY_SLOPE = 0.05  # a slope nearer to 0 than this needs no second run
AGREE = 0.5  # two batches move an exponent by less than this; where the slope is that near, it is the exact one


class CloserLook:
    """What repeated steps show; each learner is told what was seen of it.

    `training` is the Training that is looked at. `holds_weights` is true while steps run that must move nothing.
    `own_optimizers` are the probe's, and no part of the training.
    """

    def __init__(self, training: Training) -> None:
        self._training = training
        self.holds_weights = False
        self.own_optimizers: list[KerasOptimizer] = []
        self._hunt = CulpritHunt(training.session.watch, self._repeating)
        self._trial: EagerTrial | None = None
        self._slopes: dict[int, Slope] = {}  # by learner
        self._tried: set[int] = set()  # optimizers of an eager loop that had their trial

    @property
    def repeats(self) -> bool:
        """Whether the probe itself is repeating a step; the steps of a trial are the user's own loop."""
        return self.holds_weights and self._trial is None

    # --- what raised first ------------------------------------------------------------------------------------------
    def first_error(self, error: Exception, repeat: Callable[[], object]) -> Exception:
        """Where several operations of a graph fail, chance decides which of them is told: the graph has no order.
        Repeated eagerly, the step stops at the first."""
        if not isinstance(error, tf.errors.OpError) or isinstance(error, tf.errors.OutOfRangeError):
            return error  # raised in order, or the end of the data
        with self._repeating():
            try:
                repeat()
            except type(error) as first:
                return first
            except Exception:  # a step that is fit for graphs only
                return error
        return error

    # --- what was not finite first ----------------------------------------------------------------------------------
    def is_explained(self, learner: Learner) -> bool:
        """Whether no further failing step of this optimizer needs to be repeated."""
        return self._hunt.is_over(learner)

    def look_for_culprit(self, learner: Learner, wanted: int) -> None:
        self._hunt.after_step(learner, wanted)

    # --- one step at two loss scales --------------------------------------------------------------------------------
    def compare_scales(self, learners: list[Learner]) -> None:
        """The last batch at two scales, one optimizer's after the other's. Only after a training whose scale found its
        place."""
        for learner in learners:
            if self._may_compare(learner) and learner.repeat is not None:
                self._training.session.events.stage("comparing two loss scales")
                try:
                    self._compare(learner)
                except Exception as error:  # the user's step, which may be fit for graphs only
                    reason = f"the step cannot be repeated eagerly: {first_line(error)}"
                    learner.not_looked.append(("two loss scales", reason))

    def _may_compare(self, learner: Learner) -> bool:
        settled = learner.steps and learner.steps[-1].applied and not self._hunt.has_found(learner)
        return bool(settled and learner.can_set_scale and learner.dependence is None)

    def _compare(self, learner: Learner) -> None:
        """Gradients that are added up over several calls arrive with the last of them, and all are repeated."""
        for repeat in dict.fromkeys((learner.repeat, learner.repeat_all)):
            assert repeat is not None
            with self._repeating() as catchers:
                catcher = catchers[learner]
                catcher.stops = learner.steps_a_call > 1
                pairs = pairs_from_scale(learner.steps[-1].loss_scale)
                again = functools.partial(_from_the_same_state, repeat)
                measured = dependence_from_replays(learner.set_scale, again, catcher, pairs)
            if measured is not None:
                self._note_dependence(learner, *measured, catcher.wrappers)
            if learner.dependence is not None:
                return
        learner.not_looked.append(
            ("two loss scales", "no finite gradient arrived when the step was repeated at two scales")
        )

    # --- what never moved -------------------------------------------------------------------------------------------
    def look_at_standstill(self, learners: list[Learner]) -> None:
        for learner in learners:
            if learner.weights_changed() is False:
                self._training.session.events.stage("looking for what holds the weights")
                look_at_standstill(learner, self._training.session.watch, self._repeating, self.own_optimizers.append)

    # --- in an eager loop -------------------------------------------------------------------------------------------
    def begin_trial(self, moved: list[Learner]) -> None:
        """After a step of an eager loop, which can't be repeated: its next step is differentiated by the scale; where
        that does not settle it, its next steps are spent on two scales."""
        for learner in moved:
            if self._trial is not None or id(learner) in self._tried or not self._may_compare(learner):
                continue
            slope = self._slopes.get(id(learner))
            if self._can_follow(learner) and (slope is None or slope.is_open):  # open: the step was skipped
                if slope is not None:
                    slope.leave()
                self._slopes[id(learner)] = self._slope_of_next_step(learner)
            else:
                self._tried.add(id(learner))
                self._trial = EagerTrial(learner, self._repeating())

    def _can_follow(self, learner: Learner) -> bool:
        """Whether every operation with its loss scale can be differentiated by it. A fixed one is a number, in whose
        place a float32 tensor can stand where Keras casts it, or where all that meets it is float32."""
        if learner.machine is not None:
            return True
        if learner.innermost is not learner.optimizer:
            return len(learner.chain) == 2
        dtypes = {learner.keras.dtype_of(variable) for variable in learner.variables}
        return {*dtypes, self._training.session.losses.scaled_dtype} == {"float32"}

    def _slope_of_next_step(self, learner: Learner) -> Slope:
        scale = learner.fixed_scale
        if scale is None:
            return Slope(learner.keras.scale_variable(learner.chain[0]))
        watched = tf.constant(scale, tf.float32)
        learner.set_scale(watched)
        ends: list[Callable[[], object]] = [functools.partial(learner.set_scale, scale)]
        if learner.innermost is learner.optimizer:
            tell = functools.partial(self.unscaled_gradients_arrived, learner)
            ends.append(learner.keras.watch_gradients(learner.innermost, tell))
        return Slope(watched, tuple(ends))

    def unscaled_gradients_arrived(
        self, learner: Learner, gradients: list[tf.Tensor], variables: list[KerasVariable]
    ) -> None:
        """At the innermost optimizer of this learner."""
        slope = self._slopes.get(id(learner))
        if slope is None or not slope.is_open:
            return
        try:
            learner.slopes = slope.exponents(gradients, [learner.keras.path(v) for v in variables])
        except Exception:  # an operation of the user's whose gradient has none: two runs will tell
            slope.leave()
        calls, losses = self._training.session.scale_calls, self._training.session.losses
        fixed = learner.fixed_scale
        scale = float(learner.keras.scale_variable(learner.chain[0])) if fixed is None else fixed
        found = ScaleDependenceFacts(
            scale,
            scale,
            learner.slopes,
            calls["scaled"],
            calls["unscaled"] if learner.keras.unscaling_methods() else None,
            loss_dtype=losses.scaled_dtype,
            scaled_at=losses.scaled_at,
            wrappers=len(learner.chain) - 1,
        )
        if (
            found.exponents
            and abs(found.median) < EQUAL_BY_SLOPE
            and found.wrappers < 2  # the scale of one inside it is another variable
            and calls["scaled"]
            and found.unscaled_called is not False
        ):
            learner.dependence = found

    def takes_step(self, learner: Learner) -> bool:
        """Whether the step of this optimizer that just ended belongs to a trial of two scales, and not to the
        training."""
        if self._trial is None:
            return False
        trial = self._trial
        if trial.learner is learner:
            measured = trial.go_on()
            if measured is not None:
                self._trial = None
                self._note_dependence(learner, *trial.pair, *measured, trial.catcher.wrappers)
        return True

    def end_trial(self) -> None:
        """The training is over before the trial is."""
        for slope in self._slopes.values():
            slope.leave()
        if self._trial is not None:
            trial, self._trial = self._trial, None
            trial.abandon()

    def _note_dependence(
        self, learner: Learner, low: float, high: float, at_low: Passage, at_high: Passage, wrappers: int
    ) -> None:
        calls = self._training.session.scale_calls
        unscaled = calls["unscaled"] if self._training.keras.unscaling_methods() else None
        found = dependence_from_passages(low, high, at_low, at_high, calls["scaled"], unscaled, wrappers)
        if found is not None:
            scaled_at = self._training.session.losses.scaled_at
            found = replace(found, scaled_at=scaled_at, scaled_by_another=learner.is_scaled_by_another)
        if found is not None and learner.slopes and wrappers == 1:
            exact = replace(found, exponents=learner.slopes)
            found = exact if abs(exact.median - found.median) < AGREE else found
        learner.dependence = found

    # --- repeating --------------------------------------------------------------------------------------------------
    @contextmanager
    def _repeating(self) -> Iterator[dict[Learner, GradientCatcher]]:
        """Steps in here run eagerly, no optimizer moves anything, and every variable is put back to what it was."""
        learners = self._training.learners
        fixed = [(learner.keras, *scaled) for learner in learners for scaled in learner.fixed_scales()]
        eagerly = tf.config.functions_run_eagerly()
        self.holds_weights = True
        tf.config.run_functions_eagerly(True)
        try:
            with ExitStack() as stack:
                stack.enter_context(variables_put_back())
                yield {
                    learner: stack.enter_context(GradientCatcher(learner.keras, learner.chain[0]))
                    for learner in learners
                }
        finally:
            tf.config.run_functions_eagerly(eagerly)
            self.holds_weights = False
            for keras, optimizer, scale in fixed:
                keras.set_scale(optimizer, scale)
            for learner in learners:
                learner.unread()  # of steps that were no steps of the training


class EagerTrial:
    """An eager loop at two scales, which only the user's code can drive: its next steps run at a low and a high scale
    in turn and change nothing. Their batches differ, which moves an exponent far less than a defect does."""

    def __init__(self, learner: Learner, repeating: ContextManager[dict[Learner, GradientCatcher]]) -> None:
        self.learner, self._repeating = learner, repeating
        self.pair = pairs_from_scale(learner.steps[-1].loss_scale)[0]
        self.catcher = repeating.__enter__()[learner]
        self._seen: tuple[list[Passage], list[Passage]] = ([], [])
        learner.set_scale(self.pair[0])

    def go_on(self) -> tuple[Passage, Passage] | None:
        """After one step of the user's loop; the means at both scales when there were enough."""
        done = len(self._seen[0]) + len(self._seen[1]) + 1
        self._seen[(done - 1) % 2].append(self.catcher.take())
        if done < TRIAL_STEPS:
            self.learner.set_scale(self.pair[done % 2])
            return None
        self.abandon()
        return mean_of_passages(self._seen[0]), mean_of_passages(self._seen[1])

    def abandon(self) -> None:
        """Everything is what it was before the trial."""
        self._repeating.__exit__(None, None, None)


def _from_the_same_state(repeat: Callable[[], object]) -> None:
    with variables_put_back(), suppress(Enough):
        tf.random.set_seed(1)
        repeat()
