"""One adopted optimizer of a training, and the weights that it updates."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Callable, Iterator

import tensorflow as tf

from mpdoctor.examiner.capture.loss_hooks import Losses
from mpdoctor.examiner.capture.optimizers.optimizer_chain import learning_rate
from mpdoctor.examiner.keras.own_wrapper import is_own
from mpdoctor.examiner.keras.step_record import Record, Row
from mpdoctor.examiner.probe.failing_step import FailingStep
from mpdoctor.examiner.probe.loss_rises import LossRises
from mpdoctor.examiner.probe.training_call import TrainingCall
from mpdoctor.examiner.probe.weight_copies import (
    are_initialized,
    copies_of,
    differs,
    largest_magnitude,
    put_back_for_now,
)
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.examiner.replay.variable_snapshot import Snapshot
from mpdoctor.facts.fit_ending import NotMeasured
from mpdoctor.facts.location import Location
from mpdoctor.facts.training import (
    CulpritFacts,
    GradientCulpritFacts,
    GrowthFacts,
    OperationFacts,
    ScaleDependenceFacts,
    StandstillFacts,
    StepFacts,
)
from mpdoctor.loss_scale import LossScale

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasOptimizer, KerasVariable
    from mpdoctor.examiner.replay.overflow_watch import SeenOverflow


class ObservedOptimizer:
    """What is known of one outermost optimizer.

    training_call
        The training call through which its gradients arrived.
    repeat, given
        Repeats the call of its last step, and what it was given; None in a loop that only the user's own code drives.
    repeat_all
        Repeats all calls since the step before: of a training that adds gradients up.
    repeat_failing
        Whichever of these two repeated the step whose failure is explained.
    machine
        The state machine of its loss scale; None for a bare optimizer and for a fixed scale.
    variables
        The variables whose gradients arrive here; [] until the first arrive.
    around
        The optimizer whose step hands gradients on to this one; None where the program itself applies them.
    applied_at
        The user's line from which they first arrived.
    seen
        Steps that the script took, with those that were spent on a trial of two scales.
    steps_a_call
        How many of its steps the last call of a tf.function held.
    failing
        The step whose failure is explained; None where there is none, or only the user's own code can repeat it.
    call_of_step
        Repeats the last step of an eager loop, once a failing one is looked at; None where no function took it.
    culprit, loss_culprit, gradient_culprit, dependence, standstill, overflows, not_looked
        What was found out about its steps, and what could not be.
    """

    def __init__(
        self,
        keras: KerasAdapter,
        optimizer: KerasOptimizer | None,
        training_call: TrainingCall,
        losses: Losses,
        replicas: int,
    ) -> None:
        self.keras, self.optimizer, self.training_call = keras, optimizer, training_call
        self._losses = losses
        self._record = Record(replicas)
        self.machine: LossScale | None = None
        if optimizer is not None and keras.inner(optimizer) is not None and keras.is_adoptable(optimizer):
            self.machine = keras.adopt_wrapper(optimizer, self._record)
        self.steps: list[StepFacts] = []
        self.seen, self.steps_a_call = 0, 1
        self.variables: list[KerasVariable] = []
        self.around: ObservedOptimizer | None = None
        self.applied_at: Location | None = None
        self.repeat: Callable[[], object] | None = None
        self.given: object = None
        self.repeat_all: Callable[[], object] | None = None
        self.repeat_failing: Callable[[], object] | None = None
        self.last_call = 0  # of the training, in which it took its last step
        self.culprit: CulpritFacts | None = None
        self.loss_culprit: OperationFacts | None = None
        self.gradient_culprit: GradientCulpritFacts | None = None
        self.dependence: ScaleDependenceFacts | None = None
        self.standstill: StandstillFacts | None = None
        self._rises = LossRises()
        self.overflows: list[SeenOverflow] = []
        self.derivatives: tuple[tuple[str, float], ...] = ()  # exponents by differentiation
        self.not_looked: list[tuple[NotMeasured, str]] = []
        self._weights: list[tuple[KerasVariable, tf.Tensor]] = []
        self._weights_from = 0  # steps that had been seen when the weights were remembered
        self._before_step: list[tuple[KerasVariable, tf.Tensor]] = []
        self.failing: FailingStep | None = None
        self.call_of_step: Callable[[], object] | None = None

    # --- its optimizers -------------------------------------------------------------------------------------------
    @property
    def chain(self) -> list[KerasOptimizer]:
        """The optimizers from the outermost to the innermost."""
        chain = [] if self.optimizer is None else [self.optimizer]
        while chain and (inner := self.keras.inner(chain[-1])) is not None:
            chain.append(inner)
        return chain

    @property
    def innermost(self) -> KerasOptimizer:
        return self.chain[-1]

    def owns(self, optimizer: KerasOptimizer) -> bool:
        return any(optimizer is link for link in self.chain)

    @property
    def replicas(self) -> int:
        return self._record.replicas

    # --- its loss scale -------------------------------------------------------------------------------------------
    @property
    def fixed_scale(self) -> float | None:
        return None if self.optimizer is None else self.keras.fixed_scale(self.optimizer)

    @property
    def can_set_scale(self) -> bool:
        return self.machine is not None or self.fixed_scale is not None

    @property
    def is_scaled_by_another(self) -> bool:
        """Whether an optimizer scaled its loss that is none of its own wrappers."""
        tap = self._losses.of(self.variables)
        return tap is not None and tap.scaled_by is not None and not self.owns(tap.scaled_by)

    @property
    def foreign_wrapper(self) -> KerasOptimizer | None:
        """The wrapper whose loss scale is in the gradients that arrive, of an optimizer that knows none itself."""
        tap = None if self.can_set_scale else self._losses.of(self.variables)
        if tap is None or tap.scaled_by is None or self.owns(tap.scaled_by):
            return None
        is_dynamic = self.keras.inner(tap.scaled_by) is not None and self.keras.fixed_scale(tap.scaled_by) is None
        return tap.scaled_by if is_dynamic else None

    @property
    def is_scaled_by_its_wrapper(self) -> bool:
        """Whether that wrapper is one around this very optimizer."""
        link = self.foreign_wrapper
        while link is not None and link is not self.optimizer:
            link = self.keras.inner(link)
        return link is not None

    @property
    def scale_in_gradients(self) -> float | None:
        """The factor by which the loss of the last step was multiplied; None where it is not known."""
        foreign = self.foreign_wrapper
        return self.steps[-1].loss_scale if foreign is None else self.keras.scale_in_force(foreign)

    def set_scale(self, scale: float) -> None:
        """Set the scale of every wrapper, as one may wrap another; or of the other optimizer's wrapper, where that
        scaled the loss."""
        foreign = self.foreign_wrapper
        for link in [foreign] if foreign is not None else self.chain[:-1] or self.chain:
            self.keras.set_scale(link, scale)

    def fixed_scales(self) -> list[tuple[KerasOptimizer, float]]:
        """(optimizer, its fixed scale), to be restored after a trial: no variable holds them."""
        fixed = [(link, scale) for link in self.chain if (scale := self.keras.fixed_scale(link)) is not None]
        foreign = self.foreign_wrapper
        if foreign is not None and self.keras.has_no_scale_variable(foreign):
            fixed.append((foreign, self.keras.scale_in_force(foreign)))
        return fixed

    # --- its steps ------------------------------------------------------------------------------------------------
    def arrive(self, gradients: list[tf.Tensor], variables: list[KerasVariable]) -> None:
        """Gradients arrive at the outermost optimizer, in whatever graph."""
        self.variables = list(variables)
        self.applied_at = self.applied_at or own_location()
        if tf.executing_eagerly():
            self.remember_weights()
        elif self.replicas == 1:  # the graph has not run yet
            with tf.init_scope():
                if are_initialized(self.variables):
                    self.remember_weights()
                    if self.machine is None and not self._before_step:
                        self.keep_weights_before_step(self.variables)
        self._record.tap = self._losses.of(self.variables)
        self._record.expect(gradients, [self.keras.path(v) for v in variables])
        if self.machine is None and any(g is not None for g in gradients):
            # nobody asks whether they are finite: the last replica to arrive knows how those of the others are
            last = self._record.replicas - 1
            self._record.write(self.fixed_scale, gradients, by=last)

    def guard_graphs(self, guard: Callable[[], object]) -> None:
        """Let what `guard()` gives run before each step inside a graph."""
        self._record.guard = guard

    def unread(self) -> list[Row]:
        """The rows recorded since the last call."""
        return self._record.unread()

    def take(self, rows: list[Row]) -> None:
        """These were steps of the training."""
        self.steps_a_call = len(rows)
        self.steps += [self._step(row) for row in rows]
        self.remember_weights()  # of a model that its first step built: from here on

    def steps_from_record(self) -> list[StepFacts]:
        """The steps recorded since the last call. They are no steps of the training."""
        return [self._step(row) for row in self.unread()]

    def _step(self, row: Row) -> StepFacts:
        return StepFacts(
            loss_scale=None if math.isnan(row.scale) else row.scale,
            applied=row.finite or not (self.machine is not None or is_own(self.optimizer)),
            first_nonfinite=row.first_nonfinite,
            loss=None if self._record.tap is None else row.loss,
            nonfinite_replicas=row.nonfinite_replicas,
        )

    def note_growth(self) -> None:
        """Note how large the weights are, where the loss has risen."""
        self._rises.note(self.steps, [variable for variable, _ in self._weights])

    @property
    def growth(self) -> GrowthFacts | None:
        """How the weights grew while the loss rose; None where it never did."""
        if not self._rises.all:
            return None
        start = largest_magnitude([weight for _, weight in self._weights])
        return GrowthFacts(start, tuple(self._rises.all), learning_rate(self.innermost))

    # --- its weights ----------------------------------------------------------------------------------------------
    def remember_weights(self, variables: list[KerasVariable] | None = None) -> None:
        """Copy the weights before the first step, or as early as they exist."""
        if not self._weights:
            self._weights = copies_of(variables or self.variables)
            self._weights_from = len(self.steps)

    def keep_weights_before_step(self, variables: list[KerasVariable]) -> None:
        self._before_step = copies_of(variables)

    @contextmanager
    def weights_of_last_step(self) -> Iterator[None]:
        """The weights that the last step started from, where it has moved them although it failed."""
        with put_back_for_now(self._before_step):
            yield

    @contextmanager
    def weights_of_start(self) -> Iterator[None]:
        """The weights that its first step started from."""
        with put_back_for_now(self._weights):
            yield

    def keep_failing_step(self, state: Snapshot) -> None:
        """The last step failed, and why is known. `state`: of all variables before it."""
        if self.repeat_failing is not None:
            self.failing = FailingStep(self.repeat_failing, state)

    def keep_failing_call(self, state: Snapshot) -> None:
        """Like `keep_failing_step`, in an eager loop, where the function that takes a step can be called again."""
        if self.call_of_step is not None:
            self.failing = FailingStep(self.call_of_step, state)

    def weights_changed(self) -> bool | None:
        """Whether any weight changed; None where nothing was applied since the first copy: one call of a tf.function
        may have taken all steps."""
        if not self._weights or not any(step.applied for step in self.steps[self._weights_from :]):
            return None
        return self.has_moved()

    def has_moved(self) -> bool:
        """Whether any weight differs from what was remembered."""
        return any(differs(variable, old) for variable, old in self._weights)

    def unmoved_weights(self) -> list[KerasVariable]:
        """The weights that no step moved while others moved; [] where none moved, which is looked into elsewhere."""
        if not self.weights_changed():
            return []
        return [variable for variable, old in self._weights if not differs(variable, old)]

    def weights_finite(self) -> bool | None:
        if not self._weights:
            return None
        return all(bool(tf.reduce_all(tf.math.is_finite(tf.identity(v)))) for v, _ in self._weights)
