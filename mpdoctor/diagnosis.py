"""The pipeline: targets → facts → rules → diagnosis. Read this first.

source        the text, parsed and never run
examination   the program, run in the user's own interpreter until its training call, then trained a few steps
rules         facts in, findings out
settled       who speaks when several rules see one defect
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mpdoctor import __version__
from mpdoctor.excerpts import excerpt_from_location
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import (
    Crashed,
    Diagnosis,
    Finding,
    Probe,
    RuleSummary,
    Skipped,
    Stage,
    TargetReport,
)
from mpdoctor.progress import Progress
from mpdoctor.rules.precedence import settled
from mpdoctor.rules.registry import Rule, all_rules, findings_from_facts
from mpdoctor.rules.training.verdict import probe_from_training
from mpdoctor.settings import Settings
from mpdoctor.source import facts_from_files, facts_with_imports
from mpdoctor.targets import Target, python_files

FORCED_POLICY = "mixed_float16"
# What a float32 program has just the same, whatever policy it is forced to.
NEVER_WHAT_IF = ("MP602", "MP605")
# Findings that say why a target brought no model: alone, they mean exit status 2, asked for or not.
NO_MODEL = ("MP001", "MP002", "MP003", "MP004")


def diagnose(settings: Settings, progress: Progress) -> Diagnosis:
    """Examine every target and judge what was seen. Never raises for what a target does."""
    examined = [_examine(target, settings, progress) for target in settings.targets]
    progress.close()
    findings = [_told(finding, one.texts) for one in examined for finding in one.findings]
    crashed = tuple(crash for one in examined for crash in one.crashed)
    return Diagnosis(
        targets=tuple(one.report for one in examined),
        findings=tuple(findings),
        models=tuple((one.report.id, model) for one in examined for model in one.models),
        probes=tuple(probe for one in examined for probe in one.probes),
        rules=_rule_summaries(findings),
        skipped=tuple(skip for one in examined for skip in one.skipped),
        crashed=crashed,
        environment=dict(pair for one in examined for pair in one.environment),
        suppressed=0,
        exit_code=_exit_code(settings, examined, findings, crashed),
        command=settings.command,
        version=__version__,
    )


@dataclasses.dataclass(frozen=True)
class _Examined:
    """All that is known of one target."""

    report: TargetReport
    findings: tuple[Finding, ...] = ()
    models: tuple[ModelFacts, ...] = ()
    probes: tuple[Probe, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    crashed: tuple[Crashed, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    brought_nothing: bool = False
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)


def _examine(target: Target, settings: Settings, progress: Progress) -> _Examined:
    sources = _read_source(target, progress)
    unreadable = any(source.unreadable for source in sources) and target.kind in ("script", "factory")
    runs, crashes = _run(target, settings, progress, unreadable)
    keras = _keras(settings, sources, runs)
    judged = [
        *_judge_sources(sources, keras, settings),
        *(item for run in runs for item in _judge_run(run, keras, settings)),
    ]
    crashes += [item for item in judged if isinstance(item, Crashed)]
    findings = [dataclasses.replace(item, target=target.id) for item in judged if isinstance(item, Finding)]
    all_findings = settled(_mark_what_if(findings))
    last = _run_to_show(runs) or ExaminationFacts()
    return _Examined(
        report=TargetReport(
            id=target.id,
            path=str(target.path or target.module or target.id),
            kind=target.kind,
            keras=keras,
            python=last.python,
            stages=_stages(sources, runs, settings, unreadable),
            stand_ins=last.stand_ins,
            files_written=tuple(_shown(path) for path in last.files_written),
        ),
        findings=tuple(f for f in all_findings if settings.chooses(f.code, f.name)),
        models=last.models,
        probes=tuple(probe_from_training(training) for training in last.trainings),
        skipped=tuple(Skipped(*what) for training in last.trainings for what in training.not_looked),
        crashed=tuple(crashes),
        environment=last.environment,
        brought_nothing=_brought_nothing(target, all_findings, last.models),
        texts={source.path: source.text for source in sources},
    )


# --- stage 1: the source ------------------------------------------------------------------------------------------
def _read_source(target: Target, progress: Progress) -> tuple[SourceFacts, ...]:
    progress.stage("reading the source")
    if target.path is None or target.kind == "keras-file":
        return ()
    if target.kind == "directory":
        return facts_from_files((path, _shown(str(path))) for path in python_files(target.path))
    return facts_with_imports(target.path, _shown(str(target.path)))


# --- stages 2 and 3: the model and its training -------------------------------------------------------------------
def _run(
    target: Target, settings: Settings, progress: Progress, unreadable: bool
) -> tuple[list[ExaminationFacts], list[Crashed]]:
    """The runs of the examiner: one; and a second one under a forced policy if the program has no mixed precision."""
    if settings.static or unreadable or target.kind == "directory" or len(settings.targets) > 1:
        return [], []
    from mpdoctor.examination import ExaminerCrashed, examine  # the examiner's end is loaded where it is needed

    runs: list[ExaminationFacts] = []
    try:
        runs.append(examine(target, settings, progress, settings.policy))
        if settings.policy == "auto" and _has_no_mixed_precision(runs[0]):
            runs.append(examine(target, settings, progress, FORCED_POLICY))
    except ExaminerCrashed as crash:
        return runs, [Crashed("examiner", "model", str(crash))]
    return runs, []


def _run_to_show(runs: list[ExaminationFacts]) -> ExaminationFacts | None:
    """The last run that saw a model: a program that fails under a forced policy is shown as it stands."""
    return next((run for run in reversed(runs) if run.models), runs[-1] if runs else None)


def _has_no_mixed_precision(run: ExaminationFacts) -> bool:
    """No layer computes in 16 bits, no wrapper exists, nobody set a policy, and the program got to its models."""
    return bool(run.models) and run.failure is None and not any(
        model.computes_in_half or model.wrapper or model.policy_set for model in run.models
    ) and not any(training.failure for training in run.trainings)  # fmt: skip


# --- which Keras --------------------------------------------------------------------------------------------------
def _keras(settings: Settings, sources: Iterable[SourceFacts], runs: list[ExaminationFacts]) -> Keras:
    """`--keras`; else what ran; else what the text itself says, the environment says, or is installed; else 3."""
    if settings.keras is not None:
        return settings.keras
    for run in runs:
        if run.keras is not None:
            return run.keras
    for source in sources:
        if source.declared_keras is not None:
            return Keras(source.declared_keras, because=f"{source.path} says so")
    if os.environ.get("TF_USE_LEGACY_KERAS") == "1":
        return Keras("tf_keras", _installed("tf_keras"), _installed("tensorflow"), "TF_USE_LEGACY_KERAS=1 is set")
    version = _installed("keras")
    if not version:
        return Keras()
    package = "tf.keras" if version.startswith("2") else "keras"
    return Keras(package, version, _installed("tensorflow"), "installed beside mpdoctor")


def _installed(distribution: str) -> str:
    """The version of a package beside mpdoctor, "" without it. Nothing is imported."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


# --- judging ------------------------------------------------------------------------------------------------------
def _judge_sources(sources: Iterable[SourceFacts], keras: Keras, settings: Settings) -> Iterator[Finding | Crashed]:
    for source in sources:
        facts = dataclasses.replace(source, keras=keras, assume_mixed=settings.assume_mixed)
        yield from findings_from_facts("in_source", facts, keras, _chosen(settings))


def _judge_run(run: ExaminationFacts, keras: Keras, settings: Settings) -> Iterator[Finding | Crashed]:
    """What one run showed. What a forced policy alone makes possible is marked by the policy that was forced."""
    chosen = _chosen(settings)
    seen: list[tuple[str, Any]] = [("in_model", model) for model in run.models]
    seen += [("in_training", training) for training in run.trainings]
    failures: list[FailureFacts | None] = [run.failure, *(training.failure for training in run.trainings)]
    seen += [("in_failure", failure) for failure in failures if failure is not None]
    for kind, facts in seen:
        for item in findings_from_facts(kind, facts, run.keras or keras, chosen):  # `--keras` is about sources
            forced = run.forced_policy == FORCED_POLICY and settings.policy == "auto"
            yield dataclasses.replace(item, what_if=forced) if isinstance(item, Finding) else item


def _mark_what_if(findings: list[Finding]) -> list[Finding]:
    """A finding of the forced run is what-if only if the program does not have the defect as it stands."""
    real = {(f.code, f.location, f.layer) for f in findings if not f.what_if}
    kept = []
    for finding in findings:
        if not finding.what_if:
            kept.append(finding)
        elif (finding.code, finding.location, finding.layer) not in real:
            kept.append(dataclasses.replace(finding, what_if=not finding.code.startswith(NEVER_WHAT_IF)))
    return kept


def _chosen(settings: Settings) -> Callable[[Rule], bool]:
    return lambda rule: rule.code in NO_MODEL or settings.chooses(rule.code, rule.name)


# --- telling ------------------------------------------------------------------------------------------------------
def _told(finding: Finding, texts: Mapping[str, str]) -> Finding:
    """A finding as a report shows it: with its lines of source and a fingerprint that survives edits elsewhere."""
    excerpt = excerpt_from_location(finding.location, texts) if finding.location else None
    place = finding.location
    line = excerpt.lines[place.line - excerpt.first_line].strip() if excerpt and place else ""
    text = "\0".join([finding.code, place.path if place else finding.target, line, finding.layer or ""])
    return dataclasses.replace(finding, excerpt=excerpt, fingerprint=hashlib.sha256(text.encode()).hexdigest()[:16])


def _rule_summaries(findings: list[Finding]) -> tuple[RuleSummary, ...]:
    spoken = {f.code for f in findings} | {also.code for f in findings for also in f.also_seen}
    return tuple(
        RuleSummary(rule.code, rule.name, rule.summary, rule.url, rule.docs)
        for rule in all_rules()
        if rule.code in spoken
    )


def _run_statuses(runs: list[ExaminationFacts]) -> dict[str, tuple[str, str]]:
    shown = _run_to_show(runs)
    return {"model": shown.model_status, "training": shown.training_status} if shown else {}


def _stages(
    sources: tuple[SourceFacts, ...], runs: list[ExaminationFacts], settings: Settings, unreadable: bool
) -> dict[str, Stage]:
    source = Stage("failed", "not readable") if unreadable else Stage("done" if sources else "skipped")
    statuses = _run_statuses(runs)
    if statuses:
        return {"source": source, **{name: Stage(*status) for name, status in statuses.items()}}
    if settings.static:
        reason = "--static"
    elif unreadable:
        reason = "the source cannot be read"
    elif len(settings.targets) > 1:
        reason = "more than one target: source only"
    else:
        reason = "source only"
    return {"source": source, "model": Stage("skipped", reason), "training": Stage("skipped", reason)}


def _exit_code(
    settings: Settings, examined: list[_Examined], findings: list[Finding], crashed: tuple[Crashed, ...]
) -> int:
    """3 beats 2 beats 1 beats 0; --exit-zero turns 1 into 0 only."""
    if crashed:
        return 3
    if any(one.brought_nothing for one in examined):
        return 2
    failing = any(f.severity and f.severity.rank >= settings.fail_on.rank and not f.what_if for f in findings)
    return 0 if not failing or settings.exit_zero else 1


def _brought_nothing(target: Target, findings: list[Finding], models: tuple[ModelFacts, ...]) -> bool:
    """A named target from which no model came, and no finding but "it did not load" explains why."""
    codes = {f.code for f in findings}
    if target.kind == "directory" or not codes & set(NO_MODEL):
        return False
    if "MP001" in codes:
        named = Path(_shown(str(target.path)))
        return any(f.code == "MP001" and f.location is not None and Path(f.location.path) == named for f in findings)
    return not models


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
