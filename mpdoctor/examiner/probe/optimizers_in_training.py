"""Finds the optimizers of a training as gradients reach them, and counts the steps of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from mpdoctor.examiner.keras.replicas import replicas_in_step
from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
from mpdoctor.facts.training import StepFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasOptimizer, KerasVariable
    from mpdoctor.examiner.probe.training_under_way import TrainingUnderWay


class OptimizersInTraining:
    """`all`: in the order in which they were met. Until gradients arrive, the one given to compile() may be idle: then
    it is passed over."""

    def __init__(self, training: TrainingUnderWay) -> None:
        self._training = training
        self.all: list[ObservedOptimizer] = []

    def arrived(
        self,
        optimizer: KerasOptimizer,
        gradients: list[tf.Tensor],
        variables: list[KerasVariable],
        within: list[KerasOptimizer],
    ) -> bool:
        """Gradients arrive at an optimizer, in whatever graph. True if it is an outermost one. `within`: the optimizers
        whose step is under way, the outermost first."""
        training = self._training
        observed = next((known for known in self.all if known.optimizer is optimizer), None)
        owner = next((known for known in self.all if known.owns(optimizer)), None)
        if observed is None and owner is not None and (within or owner.variables):
            if optimizer is owner.innermost:
                training.replay.unscaled_gradients_arrived(owner, gradients, variables)
            return False
        if observed is None:
            replicas = replicas_in_step()
            with tf.init_scope():
                observed = self.adopt(optimizer, replicas)
            observed.around = self._around(within, variables)
        if not observed.variables:
            observed.training_call = training.call_at_hand
        if training.is_loop and not tf.executing_eagerly() and not training.count.has_stepped:
            training.graph_stop.allow(training.session.request.budget)  # counted from here: the graph is all but traced
        observed.arrive(gradients, variables)
        if training.is_loop and tf.executing_eagerly() and not training.is_repeating:
            training.replay.note_eager_step(observed)
        return True

    def _around(self, within: list[KerasOptimizer], variables: list[KerasVariable]) -> ObservedOptimizer | None:
        """Whose step hands these variables' gradients on to another optimizer, as a MultiOptimizer does."""
        handed_on = {id(variable) for variable in variables}
        return next(
            (
                observed
                for observed in self.all
                if any(observed.optimizer is optimizer for optimizer in within)
                and handed_on <= {id(variable) for variable in observed.variables}
            ),
            None,
        )

    def adopt(self, optimizer: KerasOptimizer, replicas: int) -> ObservedOptimizer:
        training = self._training
        observed = ObservedOptimizer(
            training.keras, optimizer, training.call_at_hand, training.session.losses, replicas
        )
        number = len(self.all)
        self.all.append(observed)
        if training.is_loop:
            stop, functions = training.graph_stop, training.session.function_calls
            stop.join(number)
            observed.guard_graphs(lambda: None if functions.in_xla else stop.check(number, training.wanted))
        return observed

    @property
    def active(self) -> list[ObservedOptimizer]:
        """The optimizers that gradients arrived at. Where one of them hands gradients on to others, the others count if
        any of them knows a loss scale; the outer one counts if it knows one itself, or none of them does."""
        reached = [observed for observed in self.all if observed.variables]
        with_scale = {
            id(observed.around) for observed in reached if observed.around is not None and observed.can_set_scale
        }
        return [
            observed
            for observed in reached
            if (observed.can_set_scale or id(observed) not in with_scale)
            and (observed.around is None or id(observed.around) in with_scale)
        ]

    def rounds(self, calls: int) -> int:
        """Steps that every optimizer of the training took; one that has come to rest does not count."""
        awake = [observed for observed in self.active if calls - observed.last_call <= self._training.wanted]
        return min((len(observed.steps) for observed in awake), default=0)

    def steps_to_tell(self, observed: ObservedOptimizer) -> tuple[list[StepFacts], int]:
        """(steps, steps wanted) of one optimizer: the whole training's share of it, where its steps ran further in one
        call than was asked for, or where it takes several steps for one of another."""
        fewest = min((len(other.steps) for other in self.active if other.steps), default=1)
        a_round = max(len(observed.steps) // fewest, 1)
        wanted = self._training.wanted * a_round
        return observed.steps[:wanted], wanted

    def unadopted(self) -> ObservedOptimizer:
        """For a model without an optimizer: it failed, or ended, before one was seen."""
        return ObservedOptimizer(
            self._training.keras, None, self._training.training_calls[0], self._training.session.losses, 1
        )
