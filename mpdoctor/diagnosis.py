"""The pipeline: targets → facts → rules → diagnosis. Read this first.

source        the text, parsed and never run
examination   the program, run in the user's own interpreter until its training call, then trained a few steps
rules         facts in, findings out
settled       who speaks when several rules see one defect
suppressions  what the user answered already
told          each finding once, with its lines of source
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpdoctor import __version__
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.saved_graph import SavedGraphFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed, Diagnosis, Finding, Probe, Severity, Skipped, Stage, TargetReport
from mpdoctor.judging.keras_version import JudgedBy, keras_of_target
from mpdoctor.judging.precedence import Ties, of_one_program, settled
from mpdoctor.judging.presented import in_reading_order, rule_summaries, told
from mpdoctor.judging.suppressions import Suppressions
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.progress import Progress
from mpdoctor.project.files import walk
from mpdoctor.project.project_folder import LEADS_OUT
from mpdoctor.project.targets import Target
from mpdoctor.rules.registry import Rule, all_rules, findings_from_facts
from mpdoctor.semantics.live.not_measured import not_looked_from_measurement
from mpdoctor.semantics.live.prediction_verdict import probe_from_facts
from mpdoctor.semantics.source.programs.further_trainings import not_examined
from mpdoctor.settings.options import Settings
from mpdoctor.source_stage import SourceStage
from mpdoctor.source_stage.cache import users_cache

FORCED_POLICY = "mixed_float16"
# What a float32 program has just the same, whatever policy it is forced to.
NEVER_WHAT_IF = ("MP602", "MP605")
# Findings that say why a target brought no model: alone, they mean exit status 2, asked for or not.
NO_MODEL = ("MP001", "MP002", "MP003", "MP004")
SOURCE_ONLY = {"directory": "a directory", "notebook": "a notebook", "stdin": "standard input"}


def diagnose(settings: Settings, progress: Progress) -> Diagnosis:
    """Examine every target and judge what was seen. Never raises for what a target does."""
    progress.stage("reading the source")
    stage, paths = _read_sources(settings)
    suppressions = Suppressions((stage.facts[path] for own in paths for path in own), settings)
    examined = [
        _examine(target, stage, own, suppressions, settings, progress)
        for target, own in zip(settings.targets, paths, strict=True)
    ]
    examined = [_with_comments_judged(one, suppressions, settings) for one in examined]
    stage.save()
    progress.close()
    findings = told((finding for one in examined for finding in one.findings), stage.facts)
    crashed = (*(crash for one in examined for crash in one.crashed), *suppressions.crashed)
    return Diagnosis(
        targets=tuple(one.report for one in examined),
        findings=tuple(findings),
        models=tuple((one.report.id, model) for one in examined for model in one.models),
        graphs=tuple((one.report.id, graph) for one in examined for graph in one.graphs),
        probes=tuple(probe for one in examined for probe in one.probes),
        rules=rule_summaries(findings),
        skipped=tuple(dict.fromkeys(_skipped(settings, examined, stage))),
        crashed=crashed,
        environment=dict(pair for one in examined for pair in one.environment),
        suppressed=suppressions.count,
        exit_code=_exit_code(settings, examined, findings, crashed),
        command=settings.command,
        version=__version__,
        fail_on=settings.fail_on,
    )


@dataclasses.dataclass(frozen=True)
class _Examined:
    """All that is known of one target."""

    target: Target
    paths: tuple[str, ...]
    keras: JudgedBy
    report: TargetReport
    findings: tuple[Finding, ...] = ()
    models: tuple[ModelFacts, ...] = ()
    graphs: tuple[SavedGraphFacts, ...] = ()
    probes: tuple[Probe, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    crashed: tuple[Crashed, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    brought_nothing: bool = False
    ran: bool = False


def _examine(
    target: Target,
    stage: SourceStage,
    paths: tuple[str, ...],
    suppressions: Suppressions,
    settings: Settings,
    progress: Progress,
) -> _Examined:
    sources = tuple(stage.facts[path] for path in paths)
    unreadable = any(source.unreadable for source in sources) and target.kind in ("script", "factory")
    runs, crashes = _run(target, settings, progress, unreadable)
    keras = keras_of_target(target, settings, paths, stage.facts, runs)
    chosen = _chosen(settings)
    judged = [
        *stage.judge(keras.of, frozenset(r.code for r in all_rules() if chosen(r)), paths),
        *(item for run in runs for item in _judge_run(run, keras.usual, settings)),
    ]
    crashes += [item for item in judged if isinstance(item, Crashed)]
    findings = [dataclasses.replace(item, target=target.id) for item in judged if isinstance(item, Finding)]
    all_findings = _without_needless(settled(_mark_what_if(findings), _ties(target, stage)), runs)
    left = suppressions.left_of(f for f in all_findings if settings.chooses(f.code, f.name))
    last = _run_to_show(runs) or ExaminationFacts()
    return _Examined(
        target,
        paths,
        keras,
        ran=bool(runs),
        report=TargetReport(
            id=target.id,
            path=str(target.path or target.module or target.id),
            kind=target.kind,
            keras=keras.usual,
            python=last.python,
            stages=_stages(target, sources, runs, settings, unreadable),
            stand_ins=last.stand_ins,
            files_written=tuple(_shown(path) for path in last.files_written),
            other_keras=keras.by_keras(),
        ),
        findings=tuple(left),
        models=last.models,
        graphs=last.graphs,
        probes=tuple(probe_from_facts(training) for training in last.trainings),
        skipped=(
            *_passed_over(target, sources),
            *([Skipped("file", f"{last.not_restored}.")] if last.not_restored else ()),
            *([Skipped("record", f"{last.passed_over}.")] if last.passed_over else ()),
            *(
                Skipped(not_looked_from_measurement(what), reason)
                for training in last.trainings
                for what, reason in training.not_looked
            ),
            *_further_trainings(target, last, settings),
        ),
        crashed=tuple(crashes),
        environment=last.environment,
        brought_nothing=_brought_nothing(target, sources, all_findings, bool(last.models or last.graphs)),
    )


# --- stage 1: the source ------------------------------------------------------------------------------------------
def _read_sources(settings: Settings) -> tuple[SourceStage, list[tuple[str, ...]]]:
    """The source of all targets, and the paths (as shown) of each. A program alone brings the files that it imports;
    several targets, and directories, are understood together, and a file that two of them hold is the first one's."""
    targets = settings.targets
    named = [target for target in targets if target.path is not None and not target.is_saved]
    unsaved = {t.path.absolute(): t.content for t in named if t.path is not None and t.content is not None}
    is_program = settings.is_about_one and bool(named) and named[0].kind != "directory"
    owners: dict[Path, Target] = {}
    for target in named:
        named_path = Path(str(target.path))
        files = (target.files or walk(named_path).files) if target.kind == "directory" else (named_path,)
        for path in files:
            owners.setdefault(path.absolute(), target)
    shown = {path: _shown(str(path)) for path in owners}
    cache = users_cache() if settings.cache and shown and not is_program else None
    stage = SourceStage(shown, unsaved, with_imports=is_program, assume_mixed=settings.assume_mixed, cache=cache)
    if is_program:
        return stage, [tuple(stage.facts)]
    return stage, [tuple(shown[path] for path, owner in owners.items() if owner is target) for target in targets]


def _passed_over(target: Target, sources: tuple[SourceFacts, ...]) -> Iterator[Skipped]:
    for path, reason in target.denied:
        yield Skipped("source", f"{_shown(str(path))} can't be listed: {reason}.")
    for path, reason in target.passed_over:
        yield Skipped("source", f"{_shown(str(path))} is {reason}.")
    for source in sources:
        if source.passed_over:
            yield Skipped("source", f"{source.path} is {source.passed_over}.")


def _skipped(settings: Settings, examined: list[_Examined], stage: SourceStage) -> Iterator[Skipped]:
    yield from (Skipped("target", reason) for reason in settings.not_examined)
    yield from (skip for one in examined for skip in one.skipped)
    yield from _not_followed(stage)


def _not_followed(stage: SourceStage) -> Iterator[Skipped]:
    for path in stage.passed_over:
        yield Skipped("source", f"{_shown(str(path))} is {LEADS_OUT}.")


# --- stages 2 and 3: the model and its training -------------------------------------------------------------------
def _run(
    target: Target, settings: Settings, progress: Progress, unreadable: bool
) -> tuple[list[ExaminationFacts], list[Crashed]]:
    """The runs of the examiner: one; and a second one under a forced policy if the program has no mixed precision."""
    if settings.static or unreadable or target.kind in SOURCE_ONLY or not settings.is_about_one:
        return [], []
    from mpdoctor.examination.run import ExaminerCrashed, examine  # the examiner's end is loaded where it is needed

    runs: list[ExaminationFacts] = []
    try:
        runs.append(examine(target, settings, progress, settings.policy))
        # a saved model keeps the policies of its layers, whichever is forced
        if settings.policy == "auto" and not target.is_saved and _has_no_mixed_precision(runs[0]):
            runs.append(examine(target, settings, progress, FORCED_POLICY))
    except ExaminerCrashed as crash:
        return runs, [Crashed("examiner", "model", str(crash))]
    return runs, []


def _run_to_show(runs: list[ExaminationFacts]) -> ExaminationFacts | None:
    """The last run that saw a model: a program that fails under a forced policy is shown as it stands."""
    return next((run for run in reversed(runs) if run.models or run.graphs), runs[-1] if runs else None)


def _has_no_mixed_precision(run: ExaminationFacts) -> bool:
    """No layer computes in 16 bits, no wrapper exists, nobody set a policy, and the program got to its models."""
    return bool(run.models) and run.failure is None and not any(
        model.computes_in_half or model.wrapper or model.policy_set for model in run.models
    ) and not any(training.failure for training in run.trainings)  # fmt: skip


def _further_trainings(target: Target, run: ExaminationFacts, settings: Settings) -> Iterator[Skipped]:
    """A script ends for us where its first training does."""
    if run.stopped_after_training:
        yield Skipped("training", f"what comes after the error {run.stopped_after_training}.")
    if target.kind != "script" or target.path is None or not any(one.prediction is None for one in run.trainings):
        return
    from mpdoctor.source import facts_with_imports  # walked before in the source stage, which keeps no events

    sources = facts_with_imports(target.path.absolute(), _shown(str(target.path)))
    told = not_examined(sources.values(), run.trainings, settings.all_fits)
    if told:
        yield Skipped("training", f"{told}.")


# --- judging ------------------------------------------------------------------------------------------------------
def _with_comments_judged(one: _Examined, suppressions: Suppressions, settings: Settings) -> _Examined:
    """Once all targets were judged: a comment in a file of one may answer what another one's program does there."""
    left, crashes = list(one.findings), list(one.crashed)
    for comment in suppressions.facts(one.paths, one.keras.of, one.ran):
        for item in findings_from_facts("in_suppression", comment, None, _chosen(settings)):
            if isinstance(item, Crashed):
                crashes.append(item)
            else:
                left += suppressions.left_of([dataclasses.replace(item, target=one.target.id)])
    return dataclasses.replace(one, findings=tuple(in_reading_order(left)), crashed=tuple(crashes))


def _judge_run(run: ExaminationFacts, keras: Keras, settings: Settings) -> Iterator[Finding | Crashed]:
    """What one run showed. What a forced policy alone makes possible is marked by the policy that was forced."""
    chosen = _chosen(settings)
    seen: list[tuple[str, Any]] = [("in_model", model) for model in run.models]
    seen += [("in_saved_graph", graph) for graph in run.graphs]
    seen += [("in_training", training) for training in run.trainings]
    failures = [failure for failure in (run.failure, *(training.failure for training in run.trainings)) if failure]
    seen += [("in_failure", dataclasses.replace(failure, forced_policy=run.forced_policy)) for failure in failures]
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


def _without_needless(findings: list[Finding], runs: list[ExaminationFacts]) -> list[Finding]:
    """A program that ended by itself, and whose defect its source shows, was no failure: there was no more to see."""
    failure = runs[-1].failure if runs else None
    if failure is None or not failure.is_plain_end:
        return findings
    others = [finding for finding in findings if finding.code != "MP002"]
    return others if any(finding.fails_a_run(Severity.WARNING) for finding in others) else findings


def _chosen(settings: Settings) -> Callable[[Rule], bool]:
    return lambda rule: rule.code in NO_MODEL or settings.chooses(rule.code, rule.name)


def _ties(target: Target, stage: SourceStage) -> Ties:
    """In a directory two files are of one program where one of them imports the other, perhaps through others."""
    if target.kind != "directory":
        return of_one_program
    imports = {path: facts.imports for path, facts in stage.facts.items()}
    return lambda path, other: other in imports.get(path, ()) or path in imports.get(other, ())


# --- telling ------------------------------------------------------------------------------------------------------
def _run_statuses(runs: list[ExaminationFacts]) -> dict[str, tuple[str, str]]:
    shown = _run_to_show(runs)
    return {"model": shown.model_status, "training": shown.training_status} if shown else {}


def _stages(
    target: Target,
    sources: tuple[SourceFacts, ...],
    runs: list[ExaminationFacts],
    settings: Settings,
    unreadable: bool,
) -> dict[str, Stage]:
    source = Stage("failed", "not readable") if unreadable else Stage("done" if sources else "skipped")
    statuses = _run_statuses(runs)
    if statuses:
        return {"source": source, **{name: Stage(*status) for name, status in statuses.items()}}
    if settings.static:
        reason = "--static"
    elif unreadable:
        reason = "the source cannot be read"
    elif not settings.is_about_one:
        reason = "more than one target: source only"
    else:
        reason = f"{SOURCE_ONLY.get(target.kind, 'this target')}: source only"
    return {"source": source, "model": Stage("skipped", reason), "training": Stage("skipped", reason)}


def _exit_code(
    settings: Settings, examined: list[_Examined], findings: list[Finding], crashed: tuple[Crashed, ...]
) -> int:
    """3 beats 2 beats 1 beats 0; --exit-zero turns 1 into 0 only."""
    if crashed:
        return 3
    if settings.not_examined or any(one.brought_nothing for one in examined):
        return 2
    failing = any(finding.fails_a_run(settings.fail_on) for finding in findings)
    return 0 if not failing or settings.exit_zero else 1


def _brought_nothing(
    target: Target, sources: tuple[SourceFacts, ...], findings: list[Finding], saw_model: bool
) -> bool:
    """A named target from which no model came, and no finding but "it did not load" explains why."""
    if target.kind == "directory":
        return False
    named = _shown(str(target.path))
    if any(source.unreadable and source.path == named for source in sources):
        return True
    codes = {f.code for f in findings}
    return bool(codes & set(NO_MODEL)) and "MP001" not in codes and not saw_model


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return os.path.normpath(path) if Path(relative).parts[:1] == ("..",) else relative  # "..x.py" is a name
