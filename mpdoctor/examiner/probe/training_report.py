"""Sends the events at the end of a training: models, TrainingFacts of each optimizer, remedies that were tried."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from mpdoctor.examiner.probe.graph_stop import is_stop
from mpdoctor.examiner.probe.training_facts import names_of_optimizers, trained_models, training_facts
from mpdoctor.examiner.probe.tried_remedies import tried_remedies
from mpdoctor.examiner.protocol.event_kinds import Remedies, TrainedAgain
from mpdoctor.examiner.reference.hidden_overflows import tell_hidden_overflows
from mpdoctor.examiner.reference.inner_gradients import tell_inner_gradients
from mpdoctor.examiner.reference.unmoved_weights import tell_lost_gradients
from mpdoctor.examiner.second_training.second_training import SHARE
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import ModelFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.probe.optimizers_in_training import OptimizersInTraining
    from mpdoctor.examiner.probe.training_under_way import TrainingUnderWay
    from mpdoctor.examiner.second_training.played_steps import PlayedStep


def report_training(training: TrainingUnderWay, ended: str, failure: FailureFacts | None) -> None:
    """Sends what was seen of every optimizer, at the end of a training."""
    events, optimizers = training.session.events, training.optimizers
    training.replay.end_trial()
    observed_optimizers = _reported_optimizers(optimizers)
    if ended == "budget" and optimizers.rounds(training.count.calls) < training.wanted:
        for observed in observed_optimizers:
            observed.not_looked.append(
                ("two loss scales", "the time of --budget was spent before two scales were compared")
            )
    elif failure is None:
        ended = "steps" if ended == "budget" else ended
        training.replay.compare_scales(observed_optimizers)
        training.replay.look_at_standstill(observed_optimizers)
    models = trained_models(training, observed_optimizers)
    names = names_of_optimizers([of_steps for _, of_steps in models], observed_optimizers)
    by_optimizers = sorted((model for model, _ in models), key=lambda model: len(model.optimizer))
    for model in by_optimizers:  # of the facts that are sent of one model, the last count
        events.model_seen(model)
    for observed, (_, model), name in zip(observed_optimizers, models, names):
        name = _name_among_all(training, model, name)
        events.training(training_facts(training, observed, model, name, ended, failure))
    looks_closer = failure is None and ended != "budget"
    _compare_with_float32(training, observed_optimizers, failure, looks_closer)
    if failure is None:
        _try_remedies(training, observed_optimizers)


def _reported_optimizers(optimizers: OptimizersInTraining) -> list[ObservedOptimizer]:
    """The optimizers that took steps; where none did, those that were traced, else any, but at least one."""
    stepped = [observed for observed in optimizers.active if observed.steps]
    return stepped or optimizers.active or optimizers.all[:1] or [optimizers.unadopted()]


def _compare_with_float32(
    training: TrainingUnderWay,
    observed_optimizers: list[ObservedOptimizer],
    failure: FailureFacts | None,
    looks_closer: bool,
) -> None:
    """Report what the training loses against float32: of `--reference` the whole comparison, else gradients alone."""
    if looks_closer:
        tell_hidden_overflows(training.session, training.replay, observed_optimizers)
        tell_inner_gradients(training.session, training.replay, observed_optimizers, training.count.earlier)
    if training.reference is not None:
        run_again = functools.partial(_run_again, training)
        training.reference.tell(observed_optimizers, failure, training.optimizers.all, run_again)
    elif looks_closer:
        tell_lost_gradients(training.session, training.replay, observed_optimizers)


def _try_remedies(training: TrainingUnderWay, reported: list[ObservedOptimizer]) -> None:
    """Try remedies for the trainings that were reported last. These were sent before, so that a process which hangs or
    dies in a trial has reported them."""
    events, healed = training.session.events, {}
    for place, observed in enumerate(reported):
        tried = tried_remedies(training.replay, training.session, observed)
        if tried.remedies:
            events.send(Remedies(place - len(reported), tried.remedies))
        if tried.healing:
            healed[observed] = tried.healing
    if healed and training.session.request.second_training:
        events.stage("training once more")
        for observed, facts in training.second.train(healed, functools.partial(_run_again, training)).items():
            events.send(TrainedAgain(reported.index(observed) - len(reported), facts))
    training.second.give_up("the training is over")


def _run_again(training: TrainingUnderWay, step: PlayedStep) -> None:
    """A call of the first training; one that holds a whole loop ends itself."""
    if training.is_loop:
        training.graph_stop.begin_again()
        training.graph_stop.allow(SHARE * training.session.request.budget)
    try:
        step.run()
    except Exception as error:
        if not is_stop(error):
            raise


def _name_among_all(training: TrainingUnderWay, model: ModelFacts, name: str) -> str:
    """The name of a training, with the line of its call where several fit() of the program are looked at."""
    place, request = model.call.location, training.session.request
    if not (request.all_fits or request.passes_float32) or place is None:
        return name
    return f"{name or model.id} at {request.line_in_words(place)}"
