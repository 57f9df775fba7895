"""The user's own training, shortened and watched: adopt the optimizer, count steps, look closer where a step fails."""

from __future__ import annotations

import functools
import inspect
import math
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Callable, Iterator

import tensorflow as tf

from mpdoctor.examiner import data as data_facts
from mpdoctor.examiner.closer_look import CloserLook
from mpdoctor.examiner.failures import failure_from_exception
from mpdoctor.examiner.ownership import class_location, own_location
from mpdoctor.examiner.record import Record, Row
from mpdoctor.examiner.shortened import shortened_fit
from mpdoctor.examiner.walk import model_from_live
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ArrayFacts, CallFacts, ModelFacts
from mpdoctor.facts.training import StepFacts, TrainingFacts
from mpdoctor.loss_scale import LossScale

FLOAT32_STEPS = 10  # of a program that has no mixed precision at all: the run that counts is the forced one
CALLS_A_STEP = 20  # train functions that may run for one step of the optimizer, as with accumulated gradients


def own_work(method: Callable[..., Any]) -> Callable[..., Any]:
    """An exception in here is a defect of ours: it ends the process and is reported as such, and no `except` of the
    user's can take it for the training's."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self.session.broke(error)

    return guarded


class Training:
    """One model's training under watch, from the user's training call to the end of the process."""

    def __init__(
        self,
        session: Any,
        keras: Any,
        call: CallFacts,
        model: Any,
        optimizer: Any,
        data: str = "real",
        made_up_loss: str | None = None,
    ) -> None:
        self.session, self.keras, self.call = session, keras, call
        self.model, self.optimizer = model, optimizer
        self.is_loop = call.kind == "loop"
        self._data_kind, self._made_up_loss = data, made_up_loss
        self._data: tuple[ArrayFacts, ...] = ()
        self._record: Record | None = None
        self._machine: LossScale | None = None
        self._steps: list[StepFacts] = []
        self._batch: Any = None
        self._last_call: Callable[[], Any] | None = None
        self._look = CloserLook(self)
        self._variables: list[Any] = []
        self._applied_at: Location | None = None
        self._weights: list[tuple[Any, Any]] = []
        self._weights_from = 0  # steps that had been seen when the weights were remembered
        self._before_step: list[tuple[Any, Any]] = []
        self._started = self._reported = self._first_step_at = 0.0
        self._calls = 0
        self._in_half = False
        self._wanted = session.request.steps

    # --- the three ways in ----------------------------------------------------------------------------------------
    def run_fit(self, fit: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The user's fit(), shortened. Never returns."""
        try:
            (_, *given) = inspect.signature(fit).bind(self.model, *args, **kwargs).arguments.items()
        except TypeError as error:  # an argument that fit() does not know
            self._failed(error)
        shortened = self._begin_fit(dict(given))
        try:
            fit(self.model, **shortened)
        except Exception as error:
            self._failed(error)
        self.conclude("script")

    @own_work
    def _begin_fit(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self._begin(data_facts.arrays_from_arguments(arguments))
        self.keras.observe_train_function(self.model, self._one_step)
        return shortened_fit(self.keras, arguments)

    @own_work
    def begin_on_batches(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        arguments = inspect.signature(type(self.model).train_on_batch).bind(self.model, *args, **kwargs).arguments
        self._begin(data_facts.arrays_from_arguments(arguments))
        self.keras.observe_train_function(self.model, self._one_step)

    def begin_loop(self) -> None:
        self._begin(())

    @own_work
    def _begin(self, data: tuple[ArrayFacts, ...]) -> None:
        events = self.session.events
        self._data = data
        facts = self._model_facts()
        events.facts("model", facts)
        self._in_half = facts.computes_in_half
        if not self.session.request.probe:
            events.note(training_status=["skipped", "--no-probe"])
            self.session.finish()
        if self.session.request.policy == "auto" and not facts.computes_in_half and facts.wrapper is None:
            self._wanted = min(self._wanted, FLOAT32_STEPS)
        if self.optimizer is not None:
            self._adopt(self.optimizer)
        events.stage("training")
        self._started = time.monotonic()

    def _adopt(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self._record = Record(self.session.tap)
        if self.keras.inner(optimizer) is not None and self.keras.is_adoptable(optimizer):
            self._machine = self.keras.adopt_wrapper(optimizer, self._record)

    # --- every step -----------------------------------------------------------------------------------------------
    def _one_step(self, run: Callable[[Any], Any], batch: Any) -> Any:
        """One batch of fit() or train_on_batch(); `run` is Keras' own compiled step."""
        if self._look.repeats:
            return run(batch)
        self._prepare_step(batch)
        try:
            logs = run(batch)
        except Exception as error:
            self._failed(error)
        self.after_step()
        return logs

    @own_work
    def _prepare_step(self, batch: Any) -> None:
        if not self._data:
            self._data = data_facts.arrays_from_batch(batch)
        self._batch = batch
        if not self._steps:
            self._remember_weights(self.keras.trainable_variables(self.model))
        elif self._machine is None and self._look.culprit is None and self._in_half:
            # without a wrapper a bad step is applied: the weights that it failed with must be kept
            self._before_step = [(v, tf.identity(v)) for v in self.keras.trainable_variables(self.model)]

    @own_work
    def arrived(self, optimizer: Any, gradients: list[Any], variables: list[Any]) -> bool:
        """Gradients arrive at an optimizer, in whatever graph. True if it is the outermost of this training."""
        if self._is_unused(self.optimizer) and not any(optimizer is link for link in self._chain()):
            with tf.init_scope():
                self._adopt(optimizer)
        if optimizer is not self.optimizer or self._record is None:
            return False
        self._variables = list(variables)
        self._applied_at = self._applied_at or own_location()
        if tf.executing_eagerly():
            self._remember_weights(self._variables)
        self._record.expect(gradients, [self.keras.path(v) for v in variables])
        if self._machine is None and any(g is not None for g in gradients):
            scale = self.keras.fixed_scale(optimizer)
            self._record.write(math.nan if scale is None else scale, gradients)
        return True

    def holds_still(self, optimizer: Any) -> bool:
        """While the probe repeats a step, no other optimizer of that step may move its weights a second time."""
        return self._look.holds_weights and not any(optimizer is link for link in self._chain())

    def _is_unused(self, optimizer: Any) -> bool:
        """True for the optimizer that compile() was given, or made, while the training code uses another."""
        return optimizer is None or (self._applied_at is None and not self._variables)

    def _chain(self) -> list[Any]:
        chain, optimizer = [], self.optimizer
        while optimizer is not None:
            chain.append(optimizer)
            optimizer = self.keras.inner(optimizer)
        return chain

    @own_work
    def after_call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """After the outermost tf.function of a custom loop: did it train?"""
        if self._look.repeats or self._record is None:
            return
        before = len(self._steps)
        self._last_call = lambda: function(*args, **kwargs)
        self.after_step()
        if len(self._steps) == before:
            self._last_call = None

    @own_work
    def after_step(self) -> None:
        if self._look.repeats:
            return
        self._calls += 1
        rows = [] if self._record is None else self._record.unread()
        if rows and self._look.takes_step():
            return
        self._steps += [self._step(row) for row in rows]
        now = time.monotonic()
        if rows:
            self._note_steps(now)
        if len(self._steps) >= self._wanted or self._calls >= CALLS_A_STEP * self._wanted:
            self.conclude("steps")
        self._first_step_at = self._first_step_at or now  # the budget is for steps, not for compiling the first one
        if now - self._first_step_at > self.session.request.budget:
            self.conclude("budget")
        if len(self._steps) == 1 and self.is_loop and self._last_call is None and self.can_set_scale:
            self._look.begin_trial()

    def _note_steps(self, now: float) -> None:
        self._remember_weights(self._variables)  # of a model that its first step built: from here on
        self._look.look_for_culprit(self._steps, self._wanted)
        if now - self._reported > 0.1:
            self._reported = now
            self.session.events.steps(len(self._steps), self._wanted)

    def _step(self, row: Row) -> StepFacts:
        return StepFacts(
            loss_scale=None if math.isnan(row.scale) else row.scale,
            applied=row.first_nonfinite is None or self._machine is None,
            first_nonfinite=row.first_nonfinite,
            loss=row.loss if self.session.tap.seen else None,
        )

    # --- for the closer look --------------------------------------------------------------------------------------
    @property
    def repeat(self) -> Callable[[], Any] | None:
        """What repeats the last step; None in a loop that only the user's own code can drive."""
        if self._batch is not None:
            return lambda: self.model.train_step(_tensors(self._batch))
        return self._last_call

    @property
    def can_set_scale(self) -> bool:
        return self._machine is not None or self.keras.fixed_scale(self.optimizer) is not None

    def set_scale(self, scale: float) -> None:
        self.keras.set_scale(self.optimizer, scale)

    def scale_variables(self) -> list[Any]:
        return self.keras.scale_variables(self.optimizer) if self._machine is not None else []

    def forget_rows(self) -> None:
        """Of steps that were no steps of the training."""
        if self._record is not None:
            self._record.unread()

    @contextmanager
    def weights_of_last_step(self) -> Iterator[None]:
        """The weights that the last step started from, where it has moved them although it failed."""
        now = [(variable, tf.identity(variable)) for variable, _ in self._before_step]
        for variable, value in self._before_step:
            variable.assign(value)
        yield
        for variable, value in now:
            variable.assign(value)

    # --- weights --------------------------------------------------------------------------------------------------
    def _remember_weights(self, variables: list[Any]) -> None:
        """As they were before the first step, or as early as they exist."""
        if not self._weights:
            self._weights = [(v, tf.identity(v)) for v in variables]
            self._weights_from = len(self._steps)

    def _weights_changed(self) -> bool | None:
        """None where nothing was applied since: all steps may have been taken in one call of a tf.function."""
        if not self._weights or not any(step.applied for step in self._steps[self._weights_from :]):
            return None
        return any(bool(tf.reduce_any(tf.not_equal(tf.identity(v), old))) for v, old in self._weights)

    def _weights_finite(self) -> bool | None:
        if not self._weights:
            return None
        return all(bool(tf.reduce_all(tf.math.is_finite(tf.identity(v)))) for v, _ in self._weights)

    # --- the end --------------------------------------------------------------------------------------------------
    @own_work
    def _failed(self, error: Exception) -> None:
        layer = self.session.watch.layer_of_error(error)
        place = None if layer is None else class_location(type(layer))
        failure = failure_from_exception(
            error,
            "training",
            layer=None if layer is None else layer.name,
            layer_class=None if layer is None else type(layer).__name__,
            own_layer_location=place,
            saw_model=True,
            keras=self.keras.facts,
        )
        if failure.location is None:  # Keras raised by itself: the user's line is the one that called it
            failure = replace(failure, location=self.call.location)
        self.conclude("failed", failure)

    @own_work
    def conclude(self, ended: str, failure: FailureFacts | None = None) -> None:
        """Tell what was seen and end the process."""
        events = self.session.events
        if ended == "budget":
            self._look.not_looked.append(("MP912", "the budget was spent before two scales were compared: --budget"))
        elif failure is None:
            self._look.compare_scales(self._steps)
        model = self._model_facts()
        events.facts("model", model)
        events.facts("training", self._facts(model, ended, failure))
        self.session.finish()

    def _model_facts(self) -> ModelFacts:
        facts = model_from_live(self.session, self.keras, self.model, self.optimizer, self.call, self._data)
        # what we compiled for want of a loss is not the user's doing
        return facts if self._made_up_loss is None else replace(facts, compiled=False, optimizer=(), loss="")

    def _facts(self, model: ModelFacts, ended: str, failure: FailureFacts | None) -> TrainingFacts:
        machine = self._machine
        factor = None if self.optimizer is None else self.keras.fixed_scale(self.optimizer)
        return TrainingFacts(
            model=model,
            data=self._data_kind,
            device=device(),
            steps_wanted=self._wanted,
            steps=tuple(self._steps[: self._wanted]),
            ended=ended,
            made_up_loss=self._made_up_loss,
            policy=model.global_policy,
            dynamic=True if machine else (False if factor is not None else None),
            initial_scale=machine.initial_scale if machine else factor,
            growth_interval=machine.growth_interval if machine else None,
            floor=machine.floor if machine else None,
            uses_loss_scale_factor=self.keras.is_keras3 and factor is not None,
            weights_changed=self._weights_changed(),
            weights_finite=self._weights_finite(),
            jit_compile=model.jit_compile,
            scale_dependence=self._look.dependence,
            culprit=self._look.culprit,
            failure=failure,
            applied_at=self._applied_at,
            not_looked=tuple(self._look.not_looked),
            seconds=time.monotonic() - self._started if self._started else 0.0,
        )


def device() -> str:
    """Where the steps ran: "GPU (its name)" or "CPU"."""
    gpus = tf.config.list_logical_devices("GPU")
    if not gpus:
        return "CPU"
    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    return "GPU ({})".format(details.get("device_name", gpus[0].name))


def _tensors(batch: Any) -> Any:
    return tf.nest.map_structure(lambda part: None if part is None else tf.convert_to_tensor(part), batch)
