"""Repeats steps of a running training: a failing step with its layers observed, and one step at two loss scales. Steps
that are not repeated cost nothing."""

from __future__ import annotations

import functools
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, Iterator

import tensorflow as tf

from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.replay.constant_factors import may_be_given
from mpdoctor.examiner.replay.culprit_search import CulpritSearch
from mpdoctor.examiner.replay.eager_trial import EagerTrial
from mpdoctor.examiner.replay.overflow_watch import OverflowWatch
from mpdoctor.examiner.replay.scale_derivative import ScaleDerivative
from mpdoctor.examiner.replay.scale_pairs import dependence_from_replays, pairs_from_scale
from mpdoctor.examiner.replay.step_observer import Enough
from mpdoctor.examiner.replay.two_scales import GradientCatcher, Passage, dependence_from_passages
from mpdoctor.examiner.replay.unmoved_weights import look_at_standstill
from mpdoctor.examiner.replay.variable_snapshot import variables_put_back
from mpdoctor.facts.fit_ending import NotMeasured
from mpdoctor.facts.training import ScaleDependenceFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasOptimizer, KerasVariable
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.probe.training_under_way import TrainingUnderWay


FOREIGN_TRIES = 3
HANDED_ON: tuple[NotMeasured, str] = (
    "two loss scales",
    "the step is handed the loss scale by which it multiplies, and a repetition is handed the same",
)
EQUAL_BY_SLOPE = 0.05  # a slope nearer to 0 than this needs no second run
AGREE = 0.5  # two batches move an exponent by less than this; where the slope is that near, it is the exact one


class StepReplay:
    """What repeated steps show; each observed optimizer is told what was seen of it.

    `training` is the one that is looked at. `holds_weights` is true while steps run that must move nothing.
    `own_optimizers` are the probe's, and no part of the training.
    """

    def __init__(self, training: TrainingUnderWay) -> None:
        self._training = training
        self.holds_weights = False
        self.own_optimizers: list[KerasOptimizer] = []
        self._search = CulpritSearch(training.session.layer_hooks, self.repeating)
        self._trial: EagerTrial | None = None
        self._derivatives: dict[int, ScaleDerivative] = {}  # by the id of the observed optimizer
        self._tried: set[int] = set()  # optimizers of an eager loop that had their trial

    @property
    def repeats(self) -> bool:
        """Whether the probe itself is repeating a step; the steps of a trial are the user's own loop."""
        return self.holds_weights and self._trial is None

    # --- what raised first ------------------------------------------------------------------------------------------
    def first_error(self, error: Exception, repeat: Callable[[], object]) -> Exception:
        """The error of the first operation that fails. Where several operations of a graph fail, chance decides which
        error TensorFlow raises; an eager repetition stops at the first one."""
        if not isinstance(error, tf.errors.OpError) or isinstance(error, tf.errors.OutOfRangeError):
            return error  # raised in order, or the end of the data
        with self.repeating():
            try:
                repeat()
            except Exception as first:
                # else a step that is fit for graphs only
                return first if isinstance(first, type(error)) or _is_missing_kernel(first) else error
        return error

    # --- what was not finite first ----------------------------------------------------------------------------------
    def is_explained(self, observed: ObservedOptimizer) -> bool:
        """Whether no further failing step of this optimizer needs to be repeated."""
        return self._search.is_over(observed)

    def look_for_culprit(self, observed: ObservedOptimizer, wanted: int) -> None:
        self._search.after_step(observed, wanted)

    def note_eager_step(self, observed: ObservedOptimizer) -> None:
        self._search.note_eager_step(observed)

    # --- one step at two loss scales --------------------------------------------------------------------------------
    def compare_scales(self, observed_optimizers: list[ObservedOptimizer]) -> None:
        """The last batch at two scales, one optimizer's after the other's. Only where the last step was applied: there
        the loss scale had found its place."""
        for observed in observed_optimizers:
            if self._may_compare(observed) and observed.repeat is not None:
                self._training.session.events.stage("comparing two loss scales")
                try:
                    if not self._compare(observed):
                        reason = "no finite gradient arrived when the step was repeated at two scales"
                        observed.not_looked.append(("two loss scales", reason))
                except Exception as error:  # the user's step, which may be fit for graphs only
                    reason = f"the step cannot be repeated eagerly: {first_line(error)}"
                    observed.not_looked.append(("two loss scales", reason))

    def compare_foreign_scales(self, moved: list[ObservedOptimizer]) -> None:
        """Compare two scales at once, from the initial weights, where gradients arrive with another optimizer's scale
        at an optimizer that does not know it: such updates may have broken the weights. For accumulated gradients the
        calls that accumulate are known from the second step on."""
        for observed in moved:
            is_early = len(observed.steps) <= FOREIGN_TRIES and observed.repeat is not None
            if is_early and observed.foreign_wrapper is not None and self._may_compare(observed):
                with observed.weights_of_start(), suppress(Exception):  # told at the end, if it is the same then
                    self._compare(observed)

    def _may_compare(self, observed: ObservedOptimizer) -> bool:
        is_applied = bool(observed.steps) and observed.steps[-1].applied
        has_scale = observed.can_set_scale or observed.foreign_wrapper is not None
        return is_applied and has_scale and observed.dependence is None

    def _compare(self, observed: ObservedOptimizer) -> bool:
        """Whether that could be measured. Gradients that are added up over several calls arrive with the last of them,
        and all are repeated."""
        for repeat in dict.fromkeys((observed.repeat, observed.repeat_all)):
            assert repeat is not None
            overflows = OverflowWatch(self._training.session.layer_hooks)
            with self.repeating() as catchers, overflows:
                catcher = catchers[observed]
                catcher.stops = observed.steps_a_call > 1
                pairs = pairs_from_scale(observed.scale_in_gradients)
                again = functools.partial(_from_the_same_state, repeat)
                measured = dependence_from_replays(observed.set_scale, again, catcher, pairs)
            observed.overflows = overflows.found
            if measured is not None:
                self._note_dependence(observed, *measured, catcher.wrappers)
            if observed.dependence is not None or HANDED_ON in observed.not_looked:
                return True
        return False

    # --- what never moved -------------------------------------------------------------------------------------------
    def look_at_standstill(self, observed_optimizers: list[ObservedOptimizer]) -> None:
        for observed in observed_optimizers:
            if observed.weights_changed() is False:
                self._training.session.events.stage("looking for what holds the weights")
                look_at_standstill(
                    observed, self._training.session.layer_hooks, self.repeating, self.own_optimizers.append
                )

    # --- in an eager loop -------------------------------------------------------------------------------------------
    def begin_trial(self, moved: list[ObservedOptimizer]) -> None:
        """Called after a step of an eager loop, which cannot be repeated: its next step is differentiated by the scale,
        and where that settles nothing, its next steps run at two scales."""
        for observed in moved:
            if self._trial is not None or id(observed) in self._tried or not self._may_compare(observed):
                continue
            derivative = self._derivatives.get(id(observed))
            if self._can_follow(observed) and (derivative is None or derivative.is_open):  # open: the step was skipped
                if derivative is not None:
                    derivative.leave()
                self._derivatives[id(observed)] = self._slope_of_next_step(observed)
            elif observed.optimizer is None or not observed.keras.hides_caught_steps(observed.optimizer):
                self._tried.add(id(observed))
                self._trial = EagerTrial(observed, self.repeating())

    def _can_follow(self, observed: ObservedOptimizer) -> bool:
        """Whether every operation with its loss scale can be differentiated by it. A fixed one is a number, in whose
        place a float32 tensor can stand where Keras casts it, or where all that meets it is float32."""
        if observed.machine is not None:
            return True
        if observed.fixed_scale is None:  # another optimizer's is in its gradients, and it has none itself
            return False
        if observed.innermost is not observed.optimizer:
            return len(observed.chain) == 2
        dtypes = {observed.keras.dtype_of(variable) for variable in observed.variables}
        return {*dtypes, self._training.session.losses.scaled_dtype} == {"float32"}

    def _slope_of_next_step(self, observed: ObservedOptimizer) -> ScaleDerivative:
        scale = observed.fixed_scale
        if scale is None:
            return ScaleDerivative(observed.keras.scale_variable(observed.chain[0]))
        watched = tf.constant(scale, tf.float32)
        observed.set_scale(watched)
        ends: list[Callable[[], object]] = [functools.partial(observed.set_scale, scale)]
        if observed.innermost is observed.optimizer:
            tell = functools.partial(self.unscaled_gradients_arrived, observed)
            ends.append(observed.keras.watch_gradients(observed.innermost, tell))
        return ScaleDerivative(watched, tuple(ends))

    def unscaled_gradients_arrived(
        self, observed: ObservedOptimizer, gradients: list[tf.Tensor], variables: list[KerasVariable]
    ) -> None:
        """Called when gradients arrive at the innermost optimizer of this observed optimizer."""
        derivative = self._derivatives.get(id(observed))
        if derivative is None or not derivative.is_open:
            return
        try:
            observed.derivatives = derivative.exponents(gradients, [observed.keras.path(v) for v in variables])
        except Exception:  # an operation of the user's whose gradient has none: two runs will tell
            derivative.leave()
        calls, losses = self._training.session.scaling_calls.made, self._training.session.losses
        fixed = observed.fixed_scale
        scale = observed.keras.scale_in_force(observed.chain[0]) if fixed is None else fixed
        dependence = ScaleDependenceFacts(
            scale,
            scale,
            observed.derivatives,
            calls["scaled"],
            calls["unscaled"] if observed.keras.unscaling_methods() else None,
            loss_dtype=losses.scaled_dtype,
            scaled_at=losses.scaled_at,
            wrappers=len(observed.chain) - 1,
        )
        if (
            dependence.exponents
            and abs(dependence.median) < EQUAL_BY_SLOPE
            and dependence.wrappers < 2  # the scale of one inside it is another variable
            and calls["scaled"]
            and dependence.unscaled_called is not False
        ):
            observed.dependence = dependence

    def takes_step(self, observed: ObservedOptimizer) -> bool:
        """Whether the step of this optimizer that just ended belongs to a trial of two scales, and not to the
        training."""
        if self._trial is None:
            return False
        trial = self._trial
        if trial.observed is observed:
            measured = trial.go_on()
            if measured is not None:
                self._trial = None
                self._note_dependence(observed, *trial.pair, *measured, trial.catcher.wrappers)
        return True

    def end_trial(self) -> None:
        """The training is over before the trial is."""
        for derivative in self._derivatives.values():
            derivative.leave()
        if self._trial is not None:
            trial, self._trial = self._trial, None
            trial.abandon()

    def _note_dependence(
        self, observed: ObservedOptimizer, low: float, high: float, at_low: Passage, at_high: Passage, wrappers: int
    ) -> None:
        calls = self._training.session.scaling_calls.made
        unscaled = calls["unscaled"] if self._training.keras.unscaling_methods() else None
        dependence = dependence_from_passages(low, high, at_low, at_high, calls["scaled"], unscaled, wrappers)
        if dependence is not None:
            losses = self._training.session.losses
            dependence = replace(
                dependence,
                scaled_at=losses.scaled_at,
                scaled_before_at=losses.scaled_before_at,
                scaled_by_another=observed.is_scaled_by_another,
                scaled_by_its_wrapper=observed.is_scaled_by_its_wrapper,
            )
        if dependence is not None and observed.derivatives and wrappers == 1:
            exact = replace(dependence, exponents=observed.derivatives)
            dependence = exact if abs(exact.median - dependence.median) < AGREE else dependence
        if dependence is not None and self._may_be_given_scale(observed, dependence):
            observed.not_looked.append(HANDED_ON)
        else:
            observed.dependence = dependence

    def _may_be_given_scale(self, observed: ObservedOptimizer, dependence: ScaleDependenceFacts) -> bool:
        factors = dependence.multiplied_by
        return not dependence.is_scaled and may_be_given(observed, self._training.observed_optimizers, factors)

    # --- repeating --------------------------------------------------------------------------------------------------
    @contextmanager
    def repeating(self) -> Iterator[dict[ObservedOptimizer, GradientCatcher]]:
        """Steps in here run eagerly, no optimizer moves anything, and every variable is put back to what it was."""
        observed_optimizers = self._training.observed_optimizers
        fixed = [(observed.keras, *scaled) for observed in observed_optimizers for scaled in observed.fixed_scales()]
        eagerly = tf.config.functions_run_eagerly()
        self.holds_weights = True
        tf.config.run_functions_eagerly(True)
        try:
            with ExitStack() as stack:
                stack.enter_context(variables_put_back())
                yield {
                    observed: stack.enter_context(GradientCatcher(observed.keras, observed.chain[0]))
                    for observed in observed_optimizers
                }
        finally:
            tf.config.run_functions_eagerly(eagerly)
            self.holds_weights = False
            for keras, optimizer, scale in fixed:
                keras.set_scale(optimizer, scale)
            for observed in observed_optimizers:
                observed.unread()  # of steps that were no steps of the training


def _from_the_same_state(repeat: Callable[[], object]) -> None:
    with variables_put_back(), suppress(Enough):
        tf.random.set_seed(1)
        repeat()


def _is_missing_kernel(error: Exception) -> bool:
    """Whether it says that eager mode lacks a kernel; a graph is refused as a whole, with an InvalidArgumentError."""
    return isinstance(error, tf.errors.NotFoundError) and "Could not find device for node" in str(error)
