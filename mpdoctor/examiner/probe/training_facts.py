"""What was trained, as facts: one TrainingFacts an optimizer, each with the model that holds its variables."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import tensorflow as tf

from mpdoctor.examiner.capture.live_models import smallest_model
from mpdoctor.examiner.capture.model_facts import model_from_live
from mpdoctor.examiner.capture.optimizer_chain import holds
from mpdoctor.examiner.probe.observed_optimizer import Learner
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import CallFacts, ModelFacts
from mpdoctor.facts.training import GrowthFacts, TrainingFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasModel, KerasOptimizer
    from mpdoctor.examiner.probe.training import Training


def trained_models(training: Training, learners: list[Learner]) -> list[tuple[ModelFacts, ModelFacts]]:
    """For each optimizer (the model to be told of, the model of its steps); they differ where the model is a part of
    one that was given to fit(): the whole has been judged, and the part is only shown."""
    if len(learners) == 1:
        (learner,) = learners
        whole = _model_facts(training, learner, learner.entry.model or _holder(training, learner))
        return [(whole, whole)]
    told: list[tuple[ModelFacts, ModelFacts]] = []
    names: dict[str, KerasModel | None] = {}
    for learner in learners:
        model = _holder(training, learner)
        facts = _model_facts(training, learner, model)
        while names.setdefault(facts.id, model) is not model:  # two models may have one name
            facts = replace(facts, id=facts.id + "'")
        is_part = learner.entry.model not in (None, model)
        told.append((replace(facts, call=CallFacts("none"), compiled=False) if is_part else facts, facts))
    return told


def _holder(training: Training, learner: Learner) -> KerasModel | None:
    return smallest_model(training.keras, learner.variables)


def _model_facts(training: Training, learner: Learner, model: KerasModel | None) -> ModelFacts:
    entry = learner.entry
    optimizer = _outermost(training, learner)
    facts = model_from_live(training.session, training.keras, model, optimizer, entry.call, entry.data)
    # what we compiled for want of a loss is not the user's doing
    return facts if training.made_up_loss is None else replace(facts, compiled=False, optimizer=(), loss="")


def _outermost(training: Training, learner: Learner) -> KerasOptimizer | None:
    """What the program applies gradients with, where a wrapper is to be seen inside of it."""
    outer = learner.around
    if outer is None or not holds(training.keras, outer.optimizer, learner.optimizer):
        return learner.optimizer
    return outer.optimizer


def names_of_learners(models: list[ModelFacts], learners: list[Learner]) -> list[str]:
    """The model's name, with the optimizer's where one model has several; "" where only one thing is trained."""
    if len(models) < 2:
        return [""] * len(models)
    ids = [model.id for model in models]
    names = []
    for model, learner in zip(models, learners):
        name = getattr(learner.innermost, "name", None) or type(learner.innermost).__name__
        names.append(model.id if ids.count(model.id) == 1 else f"{model.id} ({name})")
    return names


def training_facts(
    training: Training, learner: Learner, model: ModelFacts, name: str, ended: str, failure: FailureFacts | None
) -> TrainingFacts:
    machine, factor = learner.machine, learner.fixed_scale
    steps, wanted = training.steps_to_tell(learner)
    return TrainingFacts(
        model=model,
        data=training.data_kind,
        device=device(),
        steps_wanted=wanted,
        steps=tuple(steps),
        ended=ended,
        made_up_loss=training.made_up_loss,
        policy=model.global_policy,
        dynamic=True if machine else (False if factor is not None else None),
        initial_scale=machine.initial_scale if machine else factor,
        growth_interval=machine.growth_interval if machine else None,
        floor=machine.floor if machine else None,
        uses_loss_scale_factor=training.keras.scales_by_factor and factor is not None,
        weights_changed=learner.weights_changed(),
        weights_finite=learner.weights_finite(),
        jit_compile=model.jit_compile,
        scale_dependence=learner.dependence,
        culprit=learner.culprit,
        loss_culprit=learner.loss_culprit,
        gradient_culprit=learner.gradient_culprit,
        failure=failure,
        applied_at=learner.applied_at,
        not_looked=tuple(learner.not_looked),
        seconds=time.monotonic() - training.started if training.started else 0.0,
        name=name,
        replicas=learner.replicas,
        script_steps=training.own_steps(learner, ended),
        standstill=learner.standstill,
        growth=_growth(training, learner),
    )


def _growth(training: Training, learner: Learner) -> GrowthFacts | None:
    calls, growth = training.session.scale_calls, learner.growth
    kept = learner.keras.unscaling_methods() and calls["scaled"] and not calls["unscaled"]
    return replace(growth, scaled_gradients=True) if growth is not None and kept else growth


def device() -> str:
    """Where the steps ran: "GPU (its name)" or "CPU"."""
    gpus = tf.config.list_logical_devices("GPU")
    if not gpus:
        return "CPU"
    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    return "GPU ({})".format(details.get("device_name", gpus[0].name))
