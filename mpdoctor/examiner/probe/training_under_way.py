"""A training under way: adopts its optimizers, counts steps, replays a failing step, and ends the process."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, NoReturn

import tensorflow as tf

from mpdoctor.examiner.capture import data as data_facts
from mpdoctor.examiner.probe.eager_calls import repeated_call
from mpdoctor.examiner.probe.graph_stop import InGraphStop
from mpdoctor.examiner.probe.loop_end import Running
from mpdoctor.examiner.probe.mended_runs import step_until_mended
from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
from mpdoctor.examiner.probe.optimizers_in_training import OptimizersInTraining
from mpdoctor.examiner.probe.own_work import own_work
from mpdoctor.examiner.probe.short_fit.fit_end import FitEnd, failure_of_fit
from mpdoctor.examiner.probe.short_fit.script_steps import OwnBatches
from mpdoctor.examiner.probe.step_count import Again, StepCount
from mpdoctor.examiner.probe.training_call import TrainingCall
from mpdoctor.examiner.probe.training_report import report_training
from mpdoctor.examiner.protocol.event_kinds import TrainingStatus
from mpdoctor.examiner.recorded.recorded_batch import DoesNotFit, RecordedBatch
from mpdoctor.examiner.reference.reference_run import ReferenceRun
from mpdoctor.examiner.replay.step_replay import StepReplay
from mpdoctor.examiner.second_training.second_training import SecondTraining
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import CallFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel, KerasOptimizer, KerasVariable
    from mpdoctor.examiner.session import Session


class TrainingUnderWay:
    """A program's training under watch: its state, each of its steps, and its end.

    training_calls
        The training calls seen: one; several where two models take turns with train_on_batch().
    call_at_hand
        The training call whose step runs, or has run last.
    """

    def __init__(
        self,
        session: Session,
        keras: KerasAdapter,
        call: CallFacts,
        model: KerasModel | None,
        optimizer: KerasOptimizer | None,
        data: str = "real",
        made_up_loss: str | None = None,
    ) -> None:
        session.begins_to_train()
        self.session, self.keras = session, keras
        self.training_calls = [TrainingCall(call, model)]
        self.optimizers, self.count = OptimizersInTraining(self), StepCount(self)
        self.is_loop = call.kind == "loop"
        self.lines_of_step: list[Running] = []  # of a loop, when it began
        self.data_kind = "stand-in" if data == "real" and session.stand_ins.data else data
        self._recorded: RecordedBatch | None = None
        if session.request.recorded_batch is not None:
            self._recorded, self.data_kind = RecordedBatch(session.request.recorded_batch), "recorded"
        self.made_up_loss = made_up_loss
        self.wanted = session.request.steps
        self.started = 0.0
        self._given_optimizer = optimizer
        self.replay = StepReplay(self)
        self.second = SecondTraining(session, self.replay)
        self.reference: ReferenceRun | None = None
        if session.request.reference:
            self.reference = ReferenceRun(session, self.replay, self.second, self.wanted)
        self.graph_stop = InGraphStop()
        self.call_at_hand = self.training_calls[0]
        self._in_half, self._has_mixed_precision = False, False
        self._has_looked_at_error = False
        self.own_batches: OwnBatches | None = None
        self._end: FitEnd | None = None  # of a fit()

    @property
    def observed_optimizers(self) -> list[ObservedOptimizer]:
        """The observed optimizers in the order in which they were first used."""
        return self.optimizers.all

    # --- every step -----------------------------------------------------------------------------------------------
    def _one_step(self, training_call: TrainingCall, run: Callable[[object], object], batch: object) -> object:
        """One batch of fit() or train_on_batch(); `run` is Keras' own compiled step."""
        if self.is_repeating or self.is_ending:
            return run(batch)
        if self._recorded is not None:
            batch = self._recorded_in_place_of(batch, training_call, self._recorded)
        self._prepare_step(training_call, batch)
        logs = step_until_mended(self, training_call, run, batch)
        again = Again(training_call, run, batch)
        self.after_step(functools.partial(training_call.repeat_step, batch), batch, again)
        return logs

    @own_work
    def _recorded_in_place_of(self, batch: object, training_call: TrainingCall, recorded: RecordedBatch) -> object:
        assert training_call.model is not None
        try:
            return recorded.in_place_of(batch, training_call.model, self.keras)
        except DoesNotFit as reason:
            self._end_unusable(str(reason))

    def _end_unusable(self, reason: str) -> NoReturn:
        """Report that the recorded batch cannot be used, and end the process."""
        self.session.events.send(TrainingStatus("skipped", "the recorded batch can't be trained on here"))
        self.session.fail(FailureFacts("unusable", "start", message=reason, saw_model=True))
        self.session.finish()

    @own_work
    def _prepare_step(self, training_call: TrainingCall, batch: object) -> None:
        assert training_call.model is not None
        self.call_at_hand = training_call
        if not training_call.data:
            training_call.data = data_facts.arrays_from_batch(batch)
        training_call.begin_step(batch)
        self._begin_played_step()
        for observed in self.observed_optimizers:
            if observed.training_call is not training_call:
                continue
            if not observed.steps:
                observed.remember_weights(self.keras.trainable_variables(training_call.model))
            if self._needs_weights_of(observed):
                observed.keep_weights_before_step(self.keras.trainable_variables(training_call.model))

    @own_work
    def before_call(self) -> None:
        """Called before the outermost tf.function of a custom loop."""
        if not self.is_repeating:
            self.second.begin_step(self.observed_optimizers)
            for observed in self.observed_optimizers:
                if self._needs_weights_of(observed):
                    observed.keep_weights_before_step(observed.variables)

    def _begin_played_step(self) -> None:
        """Keep what a step starts from, where 16 bits may make it fail."""
        if self._in_half:
            self.second.begin()
            self.second.begin_step(self.observed_optimizers)

    @property
    def is_repeating(self) -> bool:
        """Whether what runs now are no steps of the training."""
        return self.replay.repeats or self.second.is_running

    def _needs_weights_of(self, observed: ObservedOptimizer) -> bool:
        """Whether the weights before a step must be kept: without a dynamic loss scale a bad step is applied, and
        overwrites them."""
        return observed.machine is None and self._in_half and not self.replay.is_explained(observed)

    @own_work
    def arrived(
        self,
        optimizer: KerasOptimizer,
        gradients: list[tf.Tensor],
        variables: list[KerasVariable],
        within: list[KerasOptimizer],
    ) -> bool:
        """Gradients arrive at an optimizer, in whatever graph. True if it is an outermost one. `within`: the optimizers
        whose step is under way, the outermost first."""
        return self.optimizers.arrived(optimizer, gradients, variables, within)

    def holds_still(self, optimizer: KerasOptimizer) -> bool:
        """Whether the optimizer may move no weights: the probe repeats a step, and does not know it."""
        return self.replay.holds_weights and not any(observed.owns(optimizer) for observed in self.observed_optimizers)

    def is_our_own(self, optimizer: KerasOptimizer) -> bool:
        """Whether the probe made it, to measure with."""
        return any(optimizer is own_optimizer for own_optimizer in self.replay.own_optimizers)

    @own_work
    def after_call(self, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Called after the outermost tf.function of a custom loop: it may have trained."""
        again = Again(function, lambda given: function(*given[0], **given[1]), (args, kwargs))
        self.after_step(lambda: repeated_call(function, args, kwargs), (args, kwargs), again)

    @own_work
    def stopped_in_graph(
        self, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        """The graph of the user's loop stopped itself."""
        if self.second.is_running:
            return
        again = Again(function, lambda given: function(*given[0], **given[1]), (args, kwargs))
        self.after_step(lambda: repeated_call(function, args, kwargs), again=again)
        self.conclude("budget")

    def first_error_of_call(
        self, error: Exception, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Exception:
        """The error to raise for a graph of the user's loop that failed. The step is repeated only once, unless
        something was mended meanwhile: a loop may catch its errors, and go on."""
        if self._has_looked_at_error or self.is_repeating:
            return error
        count = self.session.mender.count
        first = self.replay.first_error(error, lambda: repeated_call(function, args, kwargs))
        self._has_looked_at_error = self.session.mender.count == count
        return first

    @own_work
    def after_step(
        self, repeat: Callable[[], object] | None = None, given: object = None, again: Again | None = None
    ) -> None:
        """`repeat` runs what was just run once more, eagerly, and `again` as it was run; None where only the user's own
        code can. `given`: the batch."""
        self.count.after_step(repeat, given, again)

    # --- the end --------------------------------------------------------------------------------------------------
    @own_work
    def enough(self, ended: str) -> None:
        """Returns for a fit(), which goes to its end then; else never."""
        if self._end is None:
            self.conclude(ended)
        elif not self.is_ending:
            report_training(self, ended, None)
            self._end.begin()

    @property
    def is_ending(self) -> bool:
        return self._end is not None and self._end.begun

    @own_work
    def _finish(self, error: Exception) -> NoReturn:
        """End the process after the last step of a fit() was reported."""
        assert self._end is not None
        self._end.failed(error)
        self.session.finish()

    @own_work
    def failed(self, error: Exception) -> NoReturn:
        """Tell what was seen until the training raised this, and end the process."""
        failure = failure_of_fit(self.session, self.keras, error, "training")
        if failure.location is None:  # Keras raised by itself: the user's line is the one that called it
            failure = replace(failure, location=self.training_calls[-1].call.location)
        self.conclude("failed", failure)

    @own_work
    def conclude(self, ended: str, failure: FailureFacts | None = None) -> NoReturn:
        """Tell what was seen, of every optimizer, and end the process."""
        self._tell_end(ended, failure)
        self.session.finish()

    def tell_end_of_loop(self) -> None:
        """Tell what was seen of a loop that came to its own end; the program is not done."""
        self._tell_end("script", None)

    @own_work
    def _tell_end(self, ended: str, failure: FailureFacts | None) -> None:
        if not self.is_ending:
            report_training(self, ended, failure)
            failure = None
        if self._end is not None and failure is None and ended != "failed":
            self._end.end()
        elif self._end is not None:
            self._end.tell(failure)
