"""A short training as JSON: its steps and verdict, what it was compared with, and how it failed."""

from __future__ import annotations

from typing import Any

from mpdoctor.facts.divergence import DivergenceFacts
from mpdoctor.facts.failure import FailureFacts, MendedFacts, PartFacts
from mpdoctor.facts.reference import ReferenceFacts
from mpdoctor.facts.training import SecondTrainingFacts, TrainingFacts
from mpdoctor.finding import Probe
from mpdoctor.reporters.json.plain_values import object_from_call, object_from_place, plain


def object_from_probe(probe: Probe) -> dict[str, Any]:
    training = probe.training
    return {
        "model": training.model.id,
        "name": training.name,
        "optimizer": [link.class_name for link in training.model.optimizer],
        "call": object_from_call(training.model),
        "data": training.data,
        "made_up_loss": training.made_up_loss,
        "device": training.device,
        "policy": training.policy,
        "jit_compile": training.jit_compile,
        "dynamic": training.dynamic,
        "initial_scale": training.initial_scale,
        "growth_interval": training.growth_interval,
        "floor": training.floor,
        "uses_loss_scale_factor": training.uses_loss_scale_factor,
        "applied_at": object_from_place(training.applied_at),
        "verdict": probe.verdict,
        "why": probe.why,
        "advice": probe.advice or None,
        "mended": [_mended(mended) for mended in probe.mended],
        "went_on": probe.went_on or None,
        "ended": training.ended,
        **_steps(training),
        "gradients": {"scale_dependence": training.scale_dependence, "culprit": training.gradient_culprit},
        "weights_changed": training.weights_changed,
        "standstill": training.standstill,
        "growth": training.growth,
        "weights_finite": training.weights_finite,
        "culprit": training.culprit,
        "loss_culprit": training.loss_culprit,
        "failure": _failure(training.failure),
        "prediction": training.prediction,
        "second_training": _second_training(probe, training.second),
        "reference": _reference(training.reference),
        "seconds": training.seconds,
    }


def _steps(training: TrainingFacts) -> dict[str, Any]:
    skipped = [(number, step) for number, step in enumerate(training.steps) if not step.applied]
    return {
        "steps_wanted": training.steps_wanted,
        "steps": len(training.steps),
        "script_steps": training.script_steps,
        "loss_scale": [step.loss_scale for step in training.steps],
        "skipped_steps": [number for number, _ in skipped],
        "skip_causes": {str(number): step.first_nonfinite for number, step in skipped if step.first_nonfinite},
        "replicas": training.replicas,
        "nonfinite_replicas": {
            str(number): step.nonfinite_replicas
            for number, step in enumerate(training.steps)
            if step.nonfinite_replicas
        },
        "loss": [step.loss for step in training.steps],
        "float32_loss": _float32_loss(training),
    }


def _float32_loss(training: TrainingFacts) -> list[float | None] | None:
    """A value a step, None for those that were not compared."""
    divergence = None if training.reference is None else training.reference.divergence
    if divergence is None or not divergence.single:
        return None
    by_step = dict(zip(divergence.steps, divergence.single, strict=False))  # a saved report may hold fewer
    return [by_step.get(number) for number in range(len(training.steps))]


def _second_training(probe: Probe, second: SecondTrainingFacts | None) -> dict[str, Any] | None:
    if second is None:
        return None
    if probe.second is None:
        return {"not_tried": second.not_tried, "layers": second.layers}
    return {
        "layers": second.layers,
        "verdict": probe.second.verdict,
        "why": probe.second.why,
        "ended": second.ended,
        "steps": len(second.steps),
        "loss_scale": [step.loss_scale for step in second.steps],
        "skipped_steps": [number for number, step in enumerate(second.steps) if not step.applied],
        "loss": [step.loss for step in second.steps],
        "weights_changed": second.weights_changed,
        "weights_finite": second.weights_finite,
        "failing_batch_finite": second.failing_batch_finite,
        "seconds": second.seconds,
    }


def _reference(reference: ReferenceFacts | None) -> dict[str, Any] | None:
    if reference is None:
        return None
    room, worst = reference.room, reference.worst_variable
    derived = {} if room is None else {"highest": room.highest, "middle": room.middle}
    return {
        "fidelity": reference.fidelity,
        "worst": None if worst is None else {"path": worst.path, "cosine": worst.cosine},
        "dtype": reference.dtype,
        "steps": reference.steps,
        "room": None if room is None else {**plain(room), **derived},
        "no_time": reference.no_time,
        "seconds": reference.seconds,
        "not_measured": reference.not_measured or None,
        "divergence": _divergence(reference.divergence),
        "in_tf32": reference.in_tf32,
    }


def _divergence(divergence: DivergenceFacts | None) -> dict[str, Any] | None:
    if divergence is None:
        return None
    return {
        **plain(divergence),
        "diverges": divergence.diverges,
        "not_measured": divergence.not_measured or None,
    }


def _mended(mended: MendedFacts) -> dict[str, Any]:
    return {
        "what": mended.what,
        "name": mended.name,
        "class": mended.class_name,
        "failure": _failure(mended.failure),
    }


def _failure(failure: FailureFacts | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    return {
        "kind": failure.kind,
        "during": failure.during,
        "exception": failure.exception or None,
        "message": failure.message or None,
        "location": object_from_place(failure.location),
        "layer": failure.layer,
        "layer_class": failure.layer_class,
        "callback": failure.callback or None,
        "part": _part(failure.part),
        "frames": failure.frames,
    }


def _part(part: PartFacts | None) -> dict[str, Any] | None:
    if part is None:
        return None
    return {
        "kind": part.kind,
        "name": part.name,
        "method": part.method or None,
        "own": part.own,
        "made_at": object_from_place(part.made_at),
        "asked_by": part.asked_by or None,
        "result_refused": part.result_refused,
    }
