"""A saved diagnosis read back: what `reporters/json` wrote as a Diagnosis again, for every reporter.

Fields that a newer mpdoctor added are passed over, and those that an older one did not know have their defaults.
What only rules look at is not saved.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import cattrs
from cattrs import BaseValidationError
from cattrs.gen import make_dict_structure_fn
from cattrs.v import format_exception

from mpdoctor.facts.failure import MendedFacts
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import CallFacts, ModelFacts, OptimizerFacts
from mpdoctor.facts.saved.graph import SavedGraphFacts
from mpdoctor.facts.training import StepFacts, TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import (
    Crashed,
    Diagnosis,
    Edit,
    Finding,
    Fix,
    Probe,
    RecordedRun,
    RuleSummary,
    SecondProbe,
    Severity,
    Skipped,
    TargetReport,
    Verdict,
)
from mpdoctor.reporters.json import SCHEMA_VERSION
from mpdoctor.reporters.json.saved_values import EXIT_CODES, checked_number, checked_text, refuse_foreign
from mpdoctor.reporters.printable import one_line, shortened

Row = Mapping[str, Any]
LONGEST_PROBLEM = 300
# What another shape than the one that is expected leads to.
_DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, BaseValidationError)


class NotADiagnosis(Exception):
    """The text is no diagnosis, or one that this mpdoctor does not read. Says so in a sentence without a subject."""


def diagnosis_from_json(text: str | bytes) -> Diagnosis:
    """The diagnosis in a JSON report. Raises NotADiagnosis."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotADiagnosis("is no diagnosis by mpdoctor: it is no JSON.") from error
    _refuse_other_versions(content)
    try:
        return _diagnosis(content)
    except _DAMAGED as error:
        raise NotADiagnosis(f"is no diagnosis by mpdoctor, or a damaged one: {_problem(error)}.") from error


def _refuse_other_versions(content: object) -> None:
    version = content.get("schema_version") if isinstance(content, Mapping) else None
    if not isinstance(content, Mapping) or type(version) is not int or "mpdoctor" not in content:
        raise NotADiagnosis("is no diagnosis by mpdoctor: write one with `mpdoctor check … --report FILE.json`.")
    if version != SCHEMA_VERSION:
        raise NotADiagnosis(
            f"is a diagnosis of schema version {version}, by mpdoctor {str(content['mpdoctor'])[:40]!r}; "
            f"this mpdoctor reads version {SCHEMA_VERSION} alone."
        )


def _problem(error: Exception) -> str:
    """The error in a few words, safe to show whatever the file holds."""
    text = str(error)
    if isinstance(error, KeyError):
        text = f"{error.args[0]!r} is missing"
    elif isinstance(error, BaseValidationError):
        text = cattrs.transform_error(error, format_exception=_error_text)[0]
    return shortened(one_line(text), LONGEST_PROBLEM)


def _error_text(error: BaseException, kind: type | None) -> str:
    """A ValueError is ours, and knows more than cattrs does."""
    return f"{error}" if type(error) is ValueError else format_exception(error, kind)


def _diagnosis(content: Row) -> Diagnosis:
    read = _converter().structure
    targets = read(content["targets"], tuple[TargetReport, ...])
    models = tuple((read(row["target"], str), read(row, ModelFacts)) for row in content["models"])
    by_id = {model.id: model for _, model in models}
    keras = targets[0].keras if targets else Keras()
    return Diagnosis(
        targets=targets,
        findings=read(content["findings"], tuple[Finding, ...]),
        models=models,
        graphs=tuple((read(row["target"], str), read(row, SavedGraphFacts)) for row in content.get("graphs", ())),
        probes=tuple(_probe(row, by_id, keras, read) for row in content["probes"]),
        runs=read(content.get("runs", ()), tuple[RecordedRun, ...]),
        rules=tuple(read({"code": code, **row}, RuleSummary) for code, row in content["rules"].items()),
        skipped=read(content["skipped"], tuple[Skipped, ...]),
        crashed=read(content["crashed"], tuple[Crashed, ...]),
        environment=read(content["environment"], dict[str, str]),
        suppressed=read(content["summary"]["suppressed"], int),
        exit_code=_exit_code(read(content["summary"]["exit_code"], int)),
        command=read(content["command"], str),
        version=read(content["mpdoctor"], str),
        redacted=read(content.get("redacted", False), bool),
        fail_on=read(content.get("fail_on", Severity.WARNING.value), Severity),
    )


def _exit_code(code: int) -> int:
    if code not in EXIT_CODES:
        raise ValueError(f"there is no exit status {code}")
    return code


# --- what is laid out otherwise in JSON than in a Diagnosis ------------------------------------------------------
def _place(row: Row) -> dict[str, Any]:
    return {key: row.get(key) for key in ("path", "line", "column", "end_line", "end_column", "cell")}


def _finding(row: Row) -> Row:
    return {**row, "location": None if row.get("path") is None else _place(row)}


def _edit(row: Row) -> Row:
    start, end = row["start"], row["end"]
    ends = {"column": start["column"], "end_line": end["line"], "end_column": end["column"]}
    return {**row, "location": {"path": row["path"], "line": start["line"], "cell": row.get("cell"), **ends}}


def _fix(row: Row) -> Row:
    if not row["edits"]:
        raise ValueError("a fix has no edits")
    return row


def _target(row: Row) -> Row:
    return {**row, "other_keras": [(other["keras"], other["files"]) for other in row.get("other_keras", ())]}


def _layer(row: Row) -> Row:
    variables = [(variable["dtype"], variable["size"], variable["trainable"]) for variable in row.get("variables", ())]
    return {**_named_class(row), "variables": variables}


def _model(row: Row) -> Row:
    return {**_named_class(row), "optimizer": row["optimizer"]["chain"]}


def _named_class(row: Row) -> Row:
    return {**row, "class_name": row["class"]}


def _call(row: Row) -> Row:
    return {"kind": row["kind"], "location": None if row.get("path") is None else _place(row)}


def _probe(row: Row, models: Mapping[str, ModelFacts], keras: Keras, read: Callable[..., Any]) -> Probe:
    """What was trained is among the models; its call is the probe's own."""
    unknown = ModelFacts(
        row["model"],
        "",
        "",
        row["policy"],
        keras,
        optimizer=tuple(OptimizerFacts(name, "") for name in row["optimizer"]),
    )
    model = dataclasses.replace(models.get(row["model"], unknown), call=read(row["call"], CallFacts))
    told = {
        **row,
        "model": model,
        "steps": _steps(row, read),
        "scale_dependence": row["gradients"]["scale_dependence"],
        "gradient_culprit": row["gradients"]["culprit"],
        "second": _second_training(row, read),
        "reference": _reference(row),
    }
    again = row.get("second_training") or {}
    verdict = read(row["verdict"], Verdict)
    return Probe(
        read(told, TrainingFacts),
        verdict,
        read(row["why"], str),
        read(row.get("advice") or "", str),
        read(row.get("mended") or (), tuple[MendedFacts, ...]),
        read(row.get("went_on") or "", str),
        read(again, SecondProbe) if "verdict" in again else None,
    )


def _second_training(row: Row, read: Callable[..., Any]) -> Row | None:
    again = row.get("second_training")
    if again is None or "not_tried" in again:
        return again
    return {**again, "steps": _steps({**again, "skip_causes": {}}, read)}


def _reference(row: Row) -> Row | None:
    reference = row.get("reference")
    if reference is None:
        return None
    divergence = reference.get("divergence")
    if divergence is not None:
        divergence = {**divergence, "not_measured": divergence.get("not_measured") or ""}
    return {**reference, "not_measured": reference.get("not_measured") or "", "divergence": divergence}


def _steps(row: Row, read: Callable[..., Any]) -> tuple[StepFacts, ...]:
    skipped = read(row["skipped_steps"], frozenset[int])
    causes = read(row["skip_causes"], dict[str, str])
    replicas = read(row.get("nonfinite_replicas", {}), dict[str, tuple[int, ...]])
    scales, losses = (read(row[name], tuple[float | None, ...]) for name in ("loss_scale", "loss"))
    return tuple(
        StepFacts(scale, number not in skipped, causes.get(str(number)), loss, replicas.get(str(number), ()))
        for number, (scale, loss) in enumerate(zip(scales, losses, strict=True))
    )


LAID_OUT: dict[type, Callable[[Row], Row]] = {
    Edit: _edit,
    Fix: _fix,
    Finding: _finding,
    TargetReport: _target,
    LayerFacts: _layer,
    ModelFacts: _model,
    OptimizerFacts: _named_class,
    MendedFacts: _named_class,
    CallFacts: _call,
}


@functools.cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter()
    converter.register_structure_hook_factory(dataclasses.is_dataclass, lambda cls: _reader(cls, converter))
    for kind in (bool, int, str):
        converter.register_structure_hook(kind, _exactly)
    for named in (Severity, Verdict):  # they are str, and would be taken for it
        converter.register_structure_hook(named, lambda value, cls: cls(value))
    converter.register_structure_hook(float, _number)
    return converter


def _reader(cls: type, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    structured: Callable[[Any, Any], Any] = make_dict_structure_fn(cls, converter)
    laid_out = LAID_OUT.get(cls, dict)

    def read(row: Any, _: Any) -> Any:
        if isinstance(row, cls):  # read before
            return row
        if not isinstance(row, Mapping):
            raise TypeError(f"expected an object, not {type(row).__name__}")
        # null stands for what is not there: the default
        told = {key: value for key, value in laid_out(row).items() if value is not None}
        refuse_foreign(cls, told)
        return structured(told, cls)

    return read


def _exactly(value: Any, kind: Any) -> Any:
    """cattrs would make a str of everything."""
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, not {type(value).__name__}")
    if kind is str:
        return checked_text(value)
    return checked_number(value) if kind is int else value


def _number(value: Any, _: Any) -> float:
    if value in ("nan", "inf", "-inf") or (isinstance(value, int | float) and not isinstance(value, bool)):
        return float(value)
    raise TypeError(f"expected a number, not {type(value).__name__}")
