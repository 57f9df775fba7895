"""Turns a training into facts: one TrainingFacts per optimizer, each with the model that holds its variables."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import tensorflow as tf

from mpdoctor.examiner.capture.live_models import smallest_model
from mpdoctor.examiner.capture.model_facts import model_from_live
from mpdoctor.examiner.capture.optimizers.optimizer_chain import holds
from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import CallFacts, ModelFacts
from mpdoctor.facts.training import GrowthFacts, TrainingFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasModel, KerasOptimizer
    from mpdoctor.examiner.probe.training_under_way import TrainingUnderWay


def trained_models(
    training: TrainingUnderWay, observed_optimizers: list[ObservedOptimizer]
) -> list[tuple[ModelFacts, ModelFacts]]:
    """For each optimizer (the model to be reported, the model of its steps); they differ where the model is a part of
    one that was given to fit(): the whole has been judged, and the part is only shown."""
    if len(observed_optimizers) == 1:
        (observed,) = observed_optimizers
        whole = _model_facts(training, observed, observed.training_call.model or _holder(training, observed))
        return [(whole, whole)]
    models: list[tuple[ModelFacts, ModelFacts]] = []
    names: dict[str, KerasModel | None] = {}
    for observed in observed_optimizers:
        model = _holder(training, observed)
        facts = _model_facts(training, observed, model)
        while names.setdefault(facts.id, model) is not model:  # two models may have one name
            facts = replace(facts, id=facts.id + "'")
        is_part = observed.training_call.model not in (None, model)
        models.append((replace(facts, call=CallFacts("none"), compiled=False) if is_part else facts, facts))
    return models


def _holder(training: TrainingUnderWay, observed: ObservedOptimizer) -> KerasModel | None:
    return smallest_model(training.keras, observed.variables)


def _model_facts(training: TrainingUnderWay, observed: ObservedOptimizer, model: KerasModel | None) -> ModelFacts:
    training_call = observed.training_call
    optimizer = _outermost(training, observed)
    facts = model_from_live(training.session, training.keras, model, optimizer, training_call.call, training_call.data)
    # what we compiled for want of a loss is not the user's doing
    return facts if training.made_up_loss is None else replace(facts, compiled=False, optimizer=(), loss="")


def _outermost(training: TrainingUnderWay, observed: ObservedOptimizer) -> KerasOptimizer | None:
    """What the program applies gradients with, where a wrapper is to be seen inside of it."""
    outer = observed.around
    if outer is None or not holds(training.keras, outer.optimizer, observed.optimizer):
        return observed.optimizer
    return outer.optimizer


def names_of_optimizers(models: list[ModelFacts], observed_optimizers: list[ObservedOptimizer]) -> list[str]:
    """The model's name, with the optimizer's where one model has several, and its number where these have one name;
    "" where only one thing is trained."""
    if len(models) < 2:
        return [""] * len(models)
    ids = [model.id for model in models]
    names = []
    for model, observed in zip(models, observed_optimizers):
        name = getattr(observed.innermost, "name", None) or type(observed.innermost).__name__
        names.append(model.id if ids.count(model.id) == 1 else f"{model.id} ({name})")
    return [_with_turn(names, number) for number in range(len(names))]


def _with_turn(names: list[str], number: int) -> str:
    """The name at this place, and which of several of that name it is, as in "gan (adam, 2 of 3)"."""
    name, alike = names[number], names.count(names[number])
    return name if alike == 1 else f"{name[:-1]}, {names[:number].count(name) + 1} of {alike})"


def training_facts(
    training: TrainingUnderWay,
    observed: ObservedOptimizer,
    model: ModelFacts,
    name: str,
    ended: str,
    failure: FailureFacts | None,
) -> TrainingFacts:
    """The facts of one optimizer's training. `ended`: "steps" or "budget"; `failure`: what ended it early."""
    steps, wanted = training.optimizers.steps_to_tell(observed)
    facts = TrainingFacts(
        model=model,
        data=training.data_kind,
        device=device(),
        steps_wanted=wanted,
        steps=tuple(steps),
        ended=ended,
        made_up_loss=training.made_up_loss,
        policy=model.global_policy,
        weights_changed=observed.weights_changed(),
        weights_finite=observed.weights_finite(),
        jit_compile=model.jit_compile,
        scale_dependence=observed.dependence,
        culprit=observed.culprit,
        loss_culprit=observed.loss_culprit,
        gradient_culprit=observed.gradient_culprit,
        failure=failure,
        applied_at=observed.applied_at,
        not_looked=tuple(observed.not_looked),
        seconds=time.monotonic() - training.started if training.started else 0.0,
        name=name,
        replicas=observed.replicas,
        script_steps=training.count.own_steps(observed, ended),
        standstill=observed.standstill,
        growth=_growth(training, observed),
    )
    return _with_loss_scale(facts, training, observed)


def _with_loss_scale(facts: TrainingFacts, training: TrainingUnderWay, observed: ObservedOptimizer) -> TrainingFacts:
    """The facts with the loss scale that the optimizer had: a dynamic one, a fixed one, or none."""
    machine, factor = observed.machine, observed.fixed_scale
    by_factor = training.keras.scales_by_factor and factor is not None and len(observed.chain) == 1
    facts = replace(facts, uses_loss_scale_factor=by_factor)
    if machine is None:
        return replace(facts, dynamic=None if factor is None else False, initial_scale=factor)
    interval, floor = machine.growth_interval, machine.floor
    return replace(facts, dynamic=True, initial_scale=machine.initial_scale, growth_interval=interval, floor=floor)


def _growth(training: TrainingUnderWay, observed: ObservedOptimizer) -> GrowthFacts | None:
    calls, growth = training.session.scaling_calls.made, observed.growth
    kept = observed.keras.unscaling_methods() and calls["scaled"] and not calls["unscaled"]
    return replace(growth, scaled_gradients=True) if growth is not None and kept else growth


def device() -> str:
    """The device on which the steps ran: "GPU (its name)" or "CPU"."""
    gpus = tf.config.list_logical_devices("GPU")
    if not gpus:
        return "CPU"
    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    return "GPU ({})".format(details.get("device_name", gpus[0].name))
