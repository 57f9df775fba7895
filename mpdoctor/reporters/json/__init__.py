"""The diagnosis as JSON: the contract that users script against, schema/diagnosis-1.json.

Fields are added, never renamed, within a schema version. The text is ASCII, so that no pipe can garble it.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts, OptimizerFacts
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.finding import AlsoSeen, Diagnosis, Edit, Finding, Fix, Severity, TargetReport
from mpdoctor.reporters.json.plain_values import object_from_call, object_from_place, plain
from mpdoctor.reporters.json.trainings import object_from_probe

SCHEMA_VERSION = 1


def render(diagnosis: Diagnosis) -> str:
    return json_text(object_from_diagnosis(diagnosis))


def json_text(report: dict[str, Any]) -> str:
    return json.dumps(plain(report), indent=2, allow_nan=False) + "\n"


def object_from_diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain JSON values, as schema/diagnosis-1.json describes them."""
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
        "graphs": [{"target": target, **plain(graph)} for target, graph in diagnosis.graphs],
        "probes": [object_from_probe(probe) for probe in diagnosis.probes],
        "runs": [plain(run) for run in diagnosis.runs],
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
        "processes_started": [dataclasses.asdict(program) for program in target.processes_started],
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
        "locations": [object_from_place(place) for place in remedy.locations],
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
        "call": object_from_call(model),
        "jit_compile": model.jit_compile,
        "made_at": object_from_place(model.made_at),
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
        "made_at": object_from_place(layer.made_at),
        "own_class": layer.own_class,
        "class_location": object_from_place(layer.class_location),
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
        "made_at": object_from_place(link.made_at),
    }
