"""The user's own training, shortened and watched: adopt its optimizers, count steps, look closer where a step fails."""

from __future__ import annotations

import functools
import inspect
import time
from contextlib import suppress
from dataclasses import replace
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import tensorflow as tf

from mpdoctor.examiner.capture import data as data_facts
from mpdoctor.examiner.capture.model_facts import model_from_live
from mpdoctor.examiner.keras.replicas import replicas_in_step
from mpdoctor.examiner.probe.graph_stop import InGraphStop, is_stop
from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer, TrainingCall
from mpdoctor.examiner.probe.short_fit.fit_end import FitEnd, failure_of_fit
from mpdoctor.examiner.probe.short_fit.script_steps import OwnBatches
from mpdoctor.examiner.probe.short_fit.short_fit import shortened_fit
from mpdoctor.examiner.probe.training_facts import names_of_optimizers, trained_models, training_facts
from mpdoctor.examiner.probe.tried_remedies import tried_remedies
from mpdoctor.examiner.protocol.event_kinds import Remedies, TrainedAgain, TrainingStatus
from mpdoctor.examiner.recorded.recorded_batch import DoesNotFit, RecordedBatch
from mpdoctor.examiner.reference.reference_run import ReferenceRun
from mpdoctor.examiner.replay.step_replay import StepReplay
from mpdoctor.examiner.replay.variable_snapshot import all_have_values
from mpdoctor.examiner.second_training.second_training import SHARE, SecondTraining
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import CallFacts, ModelFacts
from mpdoctor.facts.training import StepFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel, KerasOptimizer, KerasVariable
    from mpdoctor.examiner.second_training.played_steps import PlayedStep
    from mpdoctor.examiner.session import Session


FLOAT32_STEPS = 10  # of a program that has no mixed precision at all: the run that counts is the forced one
CALLS_A_STEP = 20  # train functions that may run for one step of the optimizer, as with accumulated gradients


def own_work(method: Callable[..., Any]) -> Callable[..., Any]:
    """An exception in here is a defect of ours: it ends the process and is reported as such, and no `except` of the
    user's can take it for the training's."""

    @functools.wraps(method)
    def guarded(self: Any, *args: object, **kwargs: object) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self.session.broke(error)

    return guarded


class Again(NamedTuple):
    """`run(given)` runs a step of this owner's once more: of a training call, or of a tf.function."""

    owner: object
    run: Callable[..., object]
    given: Any


class Training:
    """A program's training under watch, from its training call to the end of the process.

    entries
        The training calls seen: one; several where two models take turns with train_on_batch().
    learners
        The optimizers, in the order in which they were met. Until gradients arrive, the one given to compile() may
        be idle: then it is passed over.
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
        self.observed_optimizers: list[ObservedOptimizer] = []
        self.is_loop = call.kind == "loop"
        self.data_kind = "stand-in" if data == "real" and session.stand_ins.data else data
        self._recorded: RecordedBatch | None = None
        if session.request.recorded_batch is not None:
            self._recorded, self.data_kind = RecordedBatch(session.request.recorded_batch), "recorded"
        self.made_up_loss = made_up_loss
        self.wanted = session.request.steps
        self.started = 0.0
        self._given_optimizer = optimizer
        self._look = StepReplay(self)
        self._second = SecondTraining(session, self._look)
        self._reference: ReferenceRun | None = None
        if session.request.reference:
            self._reference = ReferenceRun(session, self._look, self._second, self.wanted)
        self._stop = InGraphStop()
        self._training_call = self.training_calls[0]
        self._reported = self._first_step_at = 0.0
        self._calls = 0
        self._since: list[Callable[[], object]] = []  # what was run since the last step, as gradients are added up
        self._in_half = False
        self._has_looked_at_error = False
        self._own_batches: OwnBatches | None = None
        self._end: FitEnd | None = None  # of a fit()

    # --- the three ways in ----------------------------------------------------------------------------------------
    def run_fit(self, fit: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """The user's fit(), shortened. Returns its History where the program shall go on to its next fit(); else
        never."""
        training_call = self.training_calls[0]
        try:
            (_, *given) = inspect.signature(fit).bind(training_call.model, *args, **kwargs).arguments.items()
        except TypeError as error:  # an argument that fit() does not know
            self._failed(error)
        shortened = self._begin_fit(training_call, dict(given))
        try:
            history = self._fit_until_mended(fit, training_call, shortened)
        except Exception as error:
            if self._is_ending:
                self._finish(error)
            self._failed(error)
        if not self.session.request.all_fits:
            self.conclude("script")
        self._tell_all("script", None)
        self.session.end_training()
        return history

    def _fit_until_mended(
        self, fit: Callable[..., object], training_call: TrainingCall, shortened: dict[str, Any]
    ) -> object:
        """Keras 3 calls model, loss and metrics once before the first step. A generator has given its first batches
        then, and is not begun again."""
        mender = self.session.mender
        while True:
            count = mender.count
            try:
                return fit(training_call.model, **shortened)
            except Exception as error:
                once = self._calls or self._is_ending or isinstance(shortened.get("x"), GeneratorType)
                if once or not all_have_values() or not mender.mends_step(error, training_call.model, count):
                    raise

    @own_work
    def _begin_fit(self, training_call: TrainingCall, arguments: dict[str, Any]) -> dict[str, Any]:
        training_call.data = data_facts.arrays_from_arguments(arguments)
        self._begin()
        self._observe(training_call)
        self._own_batches = OwnBatches(self.keras, arguments, lambda: self._calls)
        shortened = shortened_fit(self.keras, arguments, lambda: self._enough("script"))
        assert training_call.model is not None
        self._end = FitEnd(self.session, self.keras, training_call.model, training_call.call.location)
        self._end.watch(arguments, shortened["callbacks"])
        return self._own_batches.counted(shortened)

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
            self._adopt(model.optimizer, training_call.replicas)
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
        if not self.session.request.probe:
            events.send(TrainingStatus("skipped", "--no-probe"))
            self.session.finish()
        is_run_again = self.session.request.policy == "auto" and self.session.request.what_if
        if is_run_again and not facts.computes_in_half and facts.wrapper is None:
            self.wanted = min(self.wanted, FLOAT32_STEPS)
        if self._given_optimizer is not None and not self.is_loop:
            self._adopt(self._given_optimizer, self.training_calls[0].replicas)
        if self.is_loop and self._in_half and self.session.outermost_function is not None:
            self._second.begin()  # its graph is being traced, and has not run
        events.stage("training")
        self.started = time.monotonic()

    def _observe(self, training_call: TrainingCall) -> None:
        assert training_call.model is not None
        training_call.observed = True
        training_call.make_graph_anew = self.keras.observe_train_function(
            training_call.model, functools.partial(self._one_step, training_call)
        )

    # --- every step -----------------------------------------------------------------------------------------------
    def _one_step(self, training_call: TrainingCall, run: Callable[[object], object], batch: object) -> object:
        """One batch of fit() or train_on_batch(); `run` is Keras' own compiled step."""
        if self._is_repeating or self._is_ending:
            return run(batch)
        if self._recorded is not None:
            batch = self._recorded_in_place_of(batch, training_call, self._recorded)
        self._prepare_step(training_call, batch)
        logs = self._run_until_mended(training_call, run, batch)
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
            return batch

    def _end_unusable(self, reason: str) -> None:
        """Never returns."""
        self.session.events.send(TrainingStatus("skipped", "the recorded batch can't be trained on here"))
        self.session.fail(FailureFacts("unusable", "start", message=reason, saw_model=True))
        self.session.finish()

    def _run_until_mended(self, training_call: TrainingCall, run: Callable[[object], object], batch: object) -> object:
        """What raises ends the training; under a forced policy only where float32 is no help."""
        mender = self.session.mender
        if mender.is_on and not self._calls and training_call.model is not None:
            with suppress(Exception):  # the step itself will raise it
                self.keras.make_variables(training_call.model, batch)
        while True:
            count = mender.count
            try:
                logs = run(batch)
            except Exception as error:
                first = self._look.first_error(error, functools.partial(training_call.repeat_step, batch))
                if not (all_have_values() and mender.mends_step(first, training_call.model, count)):
                    self._failed(first)
                training_call.make_graph_anew()
            else:
                mender.step_ran()
                return logs

    @own_work
    def _prepare_step(self, training_call: TrainingCall, batch: object) -> None:
        assert training_call.model is not None
        self._training_call = training_call
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
        """Before the outermost tf.function of a custom loop."""
        if not self._is_repeating:
            self._second.begin_step(self.observed_optimizers)
            for observed in self.observed_optimizers:
                if self._needs_weights_of(observed):
                    observed.keep_weights_before_step(observed.variables)

    def _begin_played_step(self) -> None:
        """Where precision may make steps fail, what they start from is kept."""
        if self._in_half:
            self._second.begin()
            self._second.begin_step(self.observed_optimizers)

    @property
    def _is_repeating(self) -> bool:
        """Whether what runs now are no steps of the training."""
        return self._look.repeats or self._second.is_running

    def _needs_weights_of(self, observed: ObservedOptimizer) -> bool:
        """Where no loss scale is adjusted a bad step is applied: the weights that it failed with must be kept."""
        return observed.machine is None and self._in_half and not self._look.is_explained(observed)

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
        observed = next((known for known in self.observed_optimizers if known.optimizer is optimizer), None)
        owner = next((known for known in self.observed_optimizers if known.owns(optimizer)), None)
        if observed is None and owner is not None and (within or owner.variables):
            if optimizer is owner.innermost:
                self._look.unscaled_gradients_arrived(owner, gradients, variables)
            return False
        if observed is None:
            replicas = replicas_in_step()
            with tf.init_scope():
                observed = self._adopt(optimizer, replicas)
            observed.around = self._around(within, variables)
        if not observed.variables:
            observed.training_call = self._training_call
        if self.is_loop and not tf.executing_eagerly() and not self._first_step_at:
            self._stop.allow(self.session.request.budget)  # counted from here: the graph is all but traced
        observed.arrive(gradients, variables)
        if self.is_loop and tf.executing_eagerly() and not self._is_repeating:
            self._look.note_eager_step(observed)
        return True

    def _around(self, within: list[KerasOptimizer], variables: list[KerasVariable]) -> ObservedOptimizer | None:
        """Whose step hands these variables' gradients on to another optimizer, as a MultiOptimizer does."""
        handed_on = {id(variable) for variable in variables}
        return next(
            (
                observed
                for observed in self.observed_optimizers
                if any(observed.optimizer is one for one in within)
                and handed_on <= {id(variable) for variable in observed.variables}
            ),
            None,
        )

    def _adopt(self, optimizer: KerasOptimizer, replicas: int) -> ObservedOptimizer:
        observed = ObservedOptimizer(self.keras, optimizer, self._training_call, self.session.losses, replicas)
        number = len(self.observed_optimizers)
        self.observed_optimizers.append(observed)
        if self.is_loop:
            self._stop.join(number)
            observed.guard_graphs(lambda: None if self.session.in_xla else self._stop.check(number, self.wanted))
        return observed

    def holds_still(self, optimizer: KerasOptimizer) -> bool:
        """While the probe repeats a step, no optimizer that it does not know may move its weights."""
        return self._look.holds_weights and not any(observed.owns(optimizer) for observed in self.observed_optimizers)

    def is_our_own(self, optimizer: KerasOptimizer) -> bool:
        """Whether the probe made it, to measure with."""
        return any(optimizer is own_optimizer for own_optimizer in self._look.own_optimizers)

    @property
    def active(self) -> list[ObservedOptimizer]:
        """The optimizers that gradients arrived at. Of one that hands them on to others and of these others, those that
        know a loss scale; where none does, the one that hands them on."""
        reached = [observed for observed in self.observed_optimizers if observed.variables]
        with_scale = {id(one.around) for one in reached if one.around is not None and one.can_set_scale}
        return [
            one
            for one in reached
            if (one.can_set_scale or id(one) not in with_scale) and (one.around is None or id(one.around) in with_scale)
        ]

    @own_work
    def after_call(self, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """After the outermost tf.function of a custom loop: did it train?"""
        again = Again(function, lambda given: function(*given[0], **given[1]), (args, kwargs))
        self.after_step(lambda: function(*args, **kwargs), (args, kwargs), again)

    @own_work
    def stopped_in_graph(
        self, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        """The graph of the user's loop stopped itself."""
        if self._second.is_running:
            return
        again = Again(function, lambda given: function(*given[0], **given[1]), (args, kwargs))
        self.after_step(lambda: function(*args, **kwargs), again=again)
        self.conclude("budget")

    def first_error_of_call(
        self, error: Exception, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Exception:
        """Where the graph of the user's loop failed. Once, unless something was mended on the way: a loop may catch its
        errors, and go on."""
        if self._has_looked_at_error or self._is_repeating:
            return error
        count = self.session.mender.count
        first = self._look.first_error(error, lambda: function(*args, **kwargs))
        self._has_looked_at_error = self.session.mender.count == count
        return first

    @own_work
    def after_step(
        self, repeat: Callable[[], object] | None = None, given: object = None, again: Again | None = None
    ) -> None:
        """`repeat` runs what was just run once more, eagerly, and `again` as it was run; None where only the user's own
        code can. `given`: the batch."""
        if self._is_repeating:
            return
        self._calls += 1
        self._since = [*self._since[-CALLS_A_STEP:], repeat] if repeat is not None else []
        moved = [observed for observed in self.observed_optimizers if self._take_rows(observed, repeat)]
        if again is not None:
            self._second.note(*again, moved=bool(moved))
        elif moved:
            self._second.give_up("an eager loop cannot be run once more")
        now = time.monotonic()
        if moved:
            self._since = []
            self._note_steps(moved, now)
            for observed in moved:
                if observed.failing is not None:
                    observed.failing.note_batch(given, repeat)
        if self._rounds() >= self.wanted or self._calls >= CALLS_A_STEP * self.wanted:
            self._enough("steps")
            return
        if not self._first_step_at:  # the budget is for steps, not for compiling the first one
            self._first_step_at = now
            if self.is_loop:
                self._stop.allow(self.session.request.budget)
        if now - self._first_step_at > self.session.request.budget:
            self._enough("budget")
            return
        if self.is_loop and repeat is None:
            self._look.begin_trial(moved)

    def _take_rows(self, observed: ObservedOptimizer, repeat: Callable[[], object] | None) -> bool:
        """What the last call recorded of one optimizer. Whether it took a step."""
        rows = observed.unread()
        observed.seen += len(rows)
        if not rows or self._look.takes_step(observed):
            return False
        observed.repeat = repeat
        observed.repeat_all = _all_of(self._since) if len(self._since) > 1 else repeat
        observed.last_call = self._calls
        observed.take(rows)
        return True

    def _rounds(self) -> int:
        """Steps that every optimizer of the training took; one that has come to rest does not count."""
        awake = [one for one in self.active if self._calls - one.last_call <= self.wanted]
        return min((len(observed.steps) for observed in awake), default=0)

    def _note_steps(self, moved: list[ObservedOptimizer], now: float) -> None:
        told = self.active
        for observed in moved:
            observed.note_growth()
            if observed in told:
                self._look.look_for_culprit(observed, self.wanted)
            if self._reference is not None:
                self._reference.note(observed)
        if now - self._reported > 0.1:
            self._reported = now
            self.session.events.steps(min(self._rounds(), self.wanted), self.wanted)

    def steps_to_tell(self, observed: ObservedOptimizer) -> tuple[list[StepFacts], int]:
        """(steps, steps wanted) of one optimizer: the whole training's share of it, where its steps ran further in one
        call than was asked for, or where it takes several steps for one of another."""
        fewest = min((len(one.steps) for one in self.active if one.steps), default=1)
        a_round = max(len(observed.steps) // fewest, 1)
        wanted = self.wanted * a_round
        return observed.steps[:wanted], wanted

    def own_steps(self, observed: ObservedOptimizer, ended: str) -> int | None:
        """How many steps of this optimizer the script itself takes; None where that is not known."""
        if ended == "script":
            return observed.seen
        batches = None if self._own_batches is None else self._own_batches.in_all
        return None if batches is None or not self._calls else round(batches * observed.seen / self._calls)

    # --- the end --------------------------------------------------------------------------------------------------
    @own_work
    def _enough(self, ended: str) -> None:
        """Returns for a fit(), which goes to its end then; else never."""
        if self._end is None:
            self.conclude(ended)
        elif not self._is_ending:
            self._tell(ended, None)
            self._end.begin()

    @property
    def _is_ending(self) -> bool:
        return self._end is not None and self._end.begun

    @own_work
    def _finish(self, error: Exception) -> None:
        """After the last step of a fit() was told of. Never returns."""
        assert self._end is not None
        self._end.failed(error)
        self.session.finish()

    @own_work
    def _failed(self, error: Exception) -> None:
        failure = failure_of_fit(self.session, self.keras, error, "training")
        if failure.location is None:  # Keras raised by itself: the user's line is the one that called it
            failure = replace(failure, location=self.training_calls[-1].call.location)
        self.conclude("failed", failure)

    @own_work
    def conclude(self, ended: str, failure: FailureFacts | None = None) -> None:
        """Tell what was seen, of every optimizer, and end the process."""
        self._tell_all(ended, failure)
        self.session.finish()

    @own_work
    def _tell_all(self, ended: str, failure: FailureFacts | None) -> None:
        if not self._is_ending:
            self._tell(ended, failure)
            failure = None
        if self._end is not None and failure is None and ended != "failed":
            self._end.end()
        elif self._end is not None:
            self._end.tell(failure)

    def _tell(self, ended: str, failure: FailureFacts | None) -> None:
        events = self.session.events
        self._look.end_trial()
        stepped = [observed for observed in self.active if observed.steps]  # not those that were merely traced
        observed_optimizers = stepped or self.active or self.observed_optimizers[:1] or [self._unadopted()]
        if ended == "budget" and self._rounds() < self.wanted:
            for observed in observed_optimizers:
                observed.not_looked.append(
                    ("two loss scales", "the budget was spent before two scales were compared: --budget")
                )
        elif failure is None:
            ended = "steps" if ended == "budget" else ended
            self._look.compare_scales(observed_optimizers)
            self._look.look_at_standstill(observed_optimizers)
        models = trained_models(self, observed_optimizers)
        names = names_of_optimizers([of_steps for _, of_steps in models], observed_optimizers)
        for told, _ in sorted(models, key=lambda pair: len(pair[0].optimizer)):  # the last one told of a model counts
            events.model_seen(told)
        for observed, (_, model), name in zip(observed_optimizers, models, names):
            name = self._name_among_all(model, name)
            events.training(training_facts(self, observed, model, name, ended, failure))
        if self._reference is not None:
            self._reference.tell(observed_optimizers, failure, self.observed_optimizers, self._run_again)
        if failure is None:
            self._try_remedies(observed_optimizers)

    def _try_remedies(self, told: list[ObservedOptimizer]) -> None:
        """Of the trainings that were told last: a process that hangs or dies in a trial has told them."""
        events, healed = self.session.events, {}
        for place, observed in enumerate(told):
            tried = tried_remedies(self._look, self.session, observed)
            if tried.remedies:
                events.send(Remedies(place - len(told), tried.remedies))
            if tried.healing:
                healed[observed] = tried.healing
        if healed and self.session.request.second_training:
            events.stage("training once more")
            for observed, facts in self._second.train(healed, self._run_again).items():
                events.send(TrainedAgain(told.index(observed) - len(told), facts))
        self._second.give_up("the training is over")

    def _run_again(self, step: PlayedStep) -> None:
        """A call of the first training; one that holds a whole loop ends itself."""
        if self.is_loop:
            self._stop.begin_again()
            self._stop.allow(SHARE * self.session.request.budget)
        try:
            step.run()
        except Exception as error:
            if not is_stop(error):
                raise

    def _name_among_all(self, model: ModelFacts, name: str) -> str:
        """With the line of its call, where each fit() of the program is looked at."""
        place = model.call.location
        if not self.session.request.all_fits or place is None:
            return name
        return f"{name or model.id} at line {place.line}"

    def _unadopted(self) -> ObservedOptimizer:
        """For a model without an optimizer: it failed, or ended, before one was seen."""
        return ObservedOptimizer(self.keras, None, self.training_calls[0], self.session.losses, 1)


def _all_of(runs: list[Callable[[], object]]) -> Callable[[], None]:
    def repeat() -> None:
        for run in runs:
            run()

    return repeat
