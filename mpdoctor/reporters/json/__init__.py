"""The diagnosis as JSON: the contract that users script against, schema/diagnosis-1.json.

Fields are added, never renamed, within a schema version. The text is ASCII, so that no pipe can garble it.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from mpdoctor.facts.divergence import DivergenceFacts
from mpdoctor.facts.failure import FailureFacts, MendedFacts, PartFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import LayerFacts, ModelFacts, OptimizerFacts
from mpdoctor.facts.reference import ReferenceFacts
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.training import SecondTrainingFacts, TrainingFacts
from mpdoctor.finding import AlsoSeen, Diagnosis, Edit, Finding, Fix, Probe, Severity, TargetReport

SCHEMA_VERSION = 1


def render(diagnosis: Diagnosis) -> str:
    return json_text(object_from_diagnosis(diagnosis))


def json_text(report: dict[str, Any]) -> str:
    return json.dumps(_plain(report), indent=2, allow_nan=False) + "\n"


def object_from_diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "mpdoctor": diagnosis.version,
        "command": diagnosis.command,
        "fail_on": diagnosis.fail_on,
        "redacted": diagnosis.redacted,
        "targets": [_target(target) for target in diagnosis.targets],
        "rules": {
            rule.code: {
                "name": rule.name,
                "summary": rule.summary,
                "url": rule.url,
                "help_markdown": rule.help_markdown,
                "severity": rule.severity,
            }
            for rule in sorted(diagnosis.rules, key=lambda rule: rule.code)
        },
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "models": [_model(target, model) for target, model in diagnosis.models],
        "graphs": [{"target": target, **_plain(graph)} for target, graph in diagnosis.graphs],
        "probes": [_probe(probe) for probe in diagnosis.probes],
        "runs": [_plain(run) for run in diagnosis.runs],
        "environment": dict(sorted(diagnosis.environment.items())),
        "skipped": [dataclasses.asdict(skipped) for skipped in diagnosis.skipped],
        "crashed": [dataclasses.asdict(crashed) for crashed in diagnosis.crashed],
        "summary": {
            "errors": diagnosis.count(Severity.ERROR),
            "warnings": diagnosis.count(Severity.WARNING),
            "infos": diagnosis.count(Severity.INFO),
            "suppressed": diagnosis.suppressed,
            "exit_code": diagnosis.exit_code,
        },
    }


def _target(target: TargetReport) -> dict[str, Any]:
    return {
        "id": target.id,
        "path": target.path,
        "kind": target.kind,
        "keras": target.keras,
        "other_keras": [{"keras": keras, "files": files} for keras, files in target.other_keras],
        "python": target.python,
        "stages": {name: dataclasses.asdict(stage) for name, stage in target.stages.items()},
        "stand_ins": target.stand_ins,
        "files_written": target.files_written,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    place = finding.location
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "what_if": finding.what_if,
        "message": finding.message,
        "help": finding.help,
        "target": finding.target,
        "path": place.path if place else None,
        "line": place.line if place else None,
        "column": (place.column or None) if place else None,
        "end_line": (place.end_line or None) if place else None,
        "end_column": (place.end_column or None) if place else None,
        "cell": (place.cell or None) if place else None,
        "excerpt": finding.excerpt,
        "stage": finding.stage,
        "model": finding.model,
        "layer": finding.layer,
        "evidence": dict(sorted(finding.evidence.items())),
        "also_seen": [_also_seen(seen) for seen in finding.also_seen],
        "fix": _fix(finding.fix),
        "remedies": [_remedy(remedy) for remedy in finding.remedies],
        "fingerprint": finding.fingerprint,
    }


def _fix(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    return {"title": fix.title, "safe": fix.safe, "edits": [object_from_edit(edit) for edit in fix.edits]}


def object_from_edit(edit: Edit) -> dict[str, Any]:
    place = edit.location
    return {
        "path": place.path,
        "cell": place.cell or None,
        "start": {"line": place.line, "column": place.column},
        "end": {"line": place.end_line, "column": place.end_column},
        "text": edit.text,
    }


def _remedy(remedy: RemedyFacts) -> dict[str, Any]:
    return {
        "kind": remedy.kind,
        "layers": remedy.layers,
        "locations": [_place(place) for place in remedy.locations],
        "with_parts": remedy.with_parts,
        "fix": None,
        "tried": remedy.tried,
        "reason": remedy.reason or None,
        "not_enough": remedy.not_enough,
        "needed": remedy.needed,
        "scale": remedy.scale,
        "batches": remedy.batches,
        "trials": remedy.trials,
        "seconds": remedy.seconds,
    }


def _also_seen(seen: AlsoSeen) -> dict[str, Any]:
    return {
        "code": seen.code,
        "stage": seen.stage,
        "path": seen.path,
        "line": seen.line,
        "cell": seen.cell or None,
        "text": seen.text,
    }


def _model(target: str, model: ModelFacts) -> dict[str, Any]:
    return {
        "id": model.id,
        "target": target,
        "name": model.name,
        "class": model.class_name,
        "policy": model.policy,
        "global_policy": model.global_policy,
        "policy_set": model.policy_set,
        "keras": model.keras,
        "compiled": model.compiled,
        "loss": model.loss or None,
        "call": _call(model),
        "jit_compile": model.jit_compile,
        "made_at": _place(model.made_at),
        "layers": [_layer(layer) for layer in model.layers],
        "optimizer": {"chain": [_optimizer(link) for link in model.optimizer]},
        "data": model.data,
    }


def _layer(layer: LayerFacts) -> dict[str, Any]:
    return {
        "path": layer.path,
        "class": layer.class_name,
        "policy": layer.policy,
        "compute_dtype": layer.compute_dtype,
        "variable_dtype": layer.variable_dtype,
        "output_dtype": layer.output_dtypes[0] if layer.output_dtypes else None,
        "output_dtypes": layer.output_dtypes,
        "parameters": sum(size for _, size, _ in layer.variables),
        "variables": [
            {"dtype": dtype, "size": size, "trainable": trainable} for dtype, size, trainable in layer.variables
        ],
        "floating": layer.floating,
        "is_output": layer.is_output,
        "ends_submodel": layer.ends_submodel,
        "is_model": layer.is_model,
        "autocast": layer.autocast,
        "made_at": _place(layer.made_at),
        "own_class": layer.own_class,
        "class_location": _place(layer.class_location),
    }


def _optimizer(link: OptimizerFacts) -> dict[str, Any]:
    return {
        "class": link.class_name,
        "module": link.module,
        "is_wrapper": link.is_wrapper,
        "dynamic": link.dynamic,
        "initial_scale": link.initial_scale,
        "growth_interval": link.growth_interval,
        "loss_scale_factor": link.loss_scale_factor,
        "made_at": _place(link.made_at),
    }


def _probe(probe: Probe) -> dict[str, Any]:
    training = probe.training
    return {
        "model": training.model.id,
        "name": training.name,
        "optimizer": [link.class_name for link in training.model.optimizer],
        "call": _call(training.model),
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
        "applied_at": _place(training.applied_at),
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
        "float32_loss": None,
    }


def _second_training(probe: Probe, second: SecondTrainingFacts | None) -> dict[str, Any] | None:
    if second is None:
        return None
    if probe.second is None:
        return {"not_tried": second.not_tried}
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
        "room": None if room is None else {**_plain(room), **derived},
        "no_time": reference.no_time,
        "seconds": reference.seconds,
        "not_measured": reference.not_measured or None,
        "divergence": _divergence(reference.divergence),
    }


def _divergence(divergence: DivergenceFacts | None) -> dict[str, Any] | None:
    if divergence is None:
        return None
    return {
        **_plain(divergence),
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
        "location": _place(failure.location),
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
        "made_at": _place(part.made_at),
        "asked_by": part.asked_by or None,
        "result_refused": part.result_refused,
    }


def _call(model: ModelFacts) -> dict[str, Any]:
    place = model.call.location
    return {
        "path": place.path if place else None,
        "line": place.line if place else None,
        "kind": model.call.kind,
    }


def _place(place: Location | None) -> dict[str, Any] | None:
    return {"path": place.path, "line": place.line} if place else None


def _plain(value: Any) -> Any:
    """What JSON can hold: dataclasses as objects, and the numbers that it lacks as "nan", "inf", "-inf"."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(_plain(inner) for inner in value)
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value)
