"""The ways into a training under watch: fit(), train_on_batch(), and a custom loop."""

from __future__ import annotations

import functools
import inspect
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable

from mpdoctor.examiner.capture import data as data_facts
from mpdoctor.examiner.capture.model_facts import model_from_live
from mpdoctor.examiner.probe.loop_end import lines_running
from mpdoctor.examiner.probe.mended_runs import fit_until_mended
from mpdoctor.examiner.probe.own_work import own_work
from mpdoctor.examiner.probe.short_fit.fit_end import FitEnd
from mpdoctor.examiner.probe.short_fit.script_steps import OwnBatches
from mpdoctor.examiner.probe.short_fit.short_fit import shortened_fit
from mpdoctor.examiner.probe.training_call import TrainingCall
from mpdoctor.examiner.probe.training_under_way import TrainingUnderWay
from mpdoctor.examiner.protocol.event_kinds import TrainingStatus
from mpdoctor.facts.model import CallFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasModel


FLOAT32_STEPS = 10  # of a program that has no mixed precision at all: the run that counts is the forced one


class Training(TrainingUnderWay):
    """A program's training, from its training call to the end of the process. fit() is shortened."""

    def run_fit(self, fit: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """The user's fit(), shortened. Returns its History where the program shall go on to its next fit(); else
        never."""
        training_call = self.training_calls[0]
        try:
            (_, *given) = inspect.signature(fit).bind(training_call.model, *args, **kwargs).arguments.items()
        except TypeError as error:  # an argument that fit() does not know
            self.failed(error)
        shortened = self._begin_fit(training_call, dict(given))
        try:
            history = fit_until_mended(self, fit, training_call, shortened)
        except Exception as error:
            if self.is_ending:
                self._finish(error)
            self.failed(error)
        request = self.session.request
        if not (request.all_fits or (request.passes_float32 and not self._has_mixed_precision)):
            self.conclude("script")
        self._tell_end("script", None)
        self.session.end_training()
        return history

    @own_work
    def _begin_fit(self, training_call: TrainingCall, arguments: dict[str, Any]) -> dict[str, Any]:
        training_call.data = data_facts.arrays_from_arguments(arguments)
        self._begin()
        self._observe(training_call)
        self.own_batches = OwnBatches(self.keras, arguments, lambda: self.count.calls)
        shortened = shortened_fit(self.keras, arguments, lambda: self.enough("script"))
        assert training_call.model is not None
        self._end = FitEnd(self.session, self.keras, training_call.model, training_call.call.location)
        self._end.watch(arguments, shortened["callbacks"])
        return self.own_batches.counted(shortened)

    @own_work
    def begin_on_batches(
        self, model: KerasModel, call: CallFacts, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        """train_on_batch() of a model, which may be the second one to take its turn."""
        arguments = inspect.signature(type(model).train_on_batch).bind(model, *args, **kwargs).arguments
        training_call = self.training_calls[0]
        if training_call.observed:
            training_call = TrainingCall(call, model)
            self.training_calls.append(training_call)
        training_call.data = data_facts.arrays_from_arguments(arguments)
        if not self.started:
            self._begin()
        elif not any(observed.owns(model.optimizer) for observed in self.observed_optimizers):
            self.optimizers.adopt(model.optimizer, training_call.replicas)
        self._observe(training_call)

    def observes(self, model: KerasModel) -> bool:
        """Whether this model's training call is known, or belongs to a training of another kind."""
        return self.training_calls[0].call.kind != "train_on_batch" or any(
            training_call.model is model for training_call in self.training_calls
        )

    @own_work
    def begin_loop(self) -> None:
        if self._recorded is not None:
            self._end_unusable("A loop takes its batches itself. Check it without --from-run, which is for fit().")
        self.lines_of_step = lines_running()
        self._begin()

    def _begin(self) -> None:
        events, training_call = self.session.events, self.training_calls[0]
        facts = model_from_live(
            self.session, self.keras, training_call.model, self._given_optimizer, training_call.call, training_call.data
        )
        if self.made_up_loss is not None:
            facts = replace(facts, compiled=False, optimizer=(), loss="")
        events.model_seen(facts)
        self._in_half = facts.computes_in_half
        self._has_mixed_precision = facts.computes_in_half or facts.wrapper is not None
        if not self.session.request.probe:
            events.send(TrainingStatus("skipped", "--no-probe"))
            self.session.finish()
        is_run_again = self.session.request.policy == "auto" and self.session.request.what_if
        if is_run_again and not self._has_mixed_precision:
            self.wanted = min(self.wanted, FLOAT32_STEPS)
        if self._given_optimizer is not None and not self.is_loop:
            self.optimizers.adopt(self._given_optimizer, self.training_calls[0].replicas)
        if self.is_loop and self._in_half and self.session.function_calls.outermost is not None:
            self.second.begin()  # its graph is being traced, and has not run
        events.stage("training")
        self.started = time.monotonic()

    def _observe(self, training_call: TrainingCall) -> None:
        assert training_call.model is not None
        training_call.observed = True
        training_call.make_graph_anew = self.keras.observe_train_function(
            training_call.model, functools.partial(self._one_step, training_call)
        )
