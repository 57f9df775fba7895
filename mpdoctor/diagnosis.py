"""The pipeline: targets → facts → rules → diagnosis. Read this first.

source_stage             the text of all targets, parsed and never run
examination              each program, run in the user's own interpreter until its training call, then trained a few
                         steps
judging.keras_version    the Keras that the source is judged by
rules                    facts in, findings out
judging.precedence       which finding is reported where several rules see one defect
judging.suppressions     what the user has answered with an ignore comment
judging.shown_findings   each finding once, with its lines of source
judging.outcome          the exit status
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mpdoctor import __version__
from mpdoctor.examination.target_runs import further_trainings, run_to_show, runs_of_target
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.finding import Crashed, Diagnosis, Finding, Probe, Skipped, Stage, TargetReport
from mpdoctor.judging.keras_version import JudgedBy, keras_of_target
from mpdoctor.judging.older_keras_code import JudgedSource, findings_of_source
from mpdoctor.judging.outcome import (
    brings_nothing,
    exit_code,
    reason_not_run,
    skipped_in_run,
    stages_of_target,
    unknown_policies,
)
from mpdoctor.judging.precedence import Ties, merged_findings, of_one_program, tied_by_imports
from mpdoctor.judging.shown_findings import findings_for_report, rule_summaries
from mpdoctor.judging.sights import sorted_by_place
from mpdoctor.judging.spelled_advice import spelled
from mpdoctor.judging.suppressions import Suppressions
from mpdoctor.judging.what_if import (
    chosen_rules,
    findings_of_run,
    trained_by_hand,
    with_what_if_marked,
    without_needless,
)
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.progress import Progress
from mpdoctor.project.edited_files import EditedFiles
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.project.targets import Target
from mpdoctor.rules.registry import all_rules, findings_from_facts
from mpdoctor.settings.options import Settings
from mpdoctor.source_stage import SILENT, SourceStage
from mpdoctor.source_stage.target_files import not_followed, passed_over, source_stage_of_targets

if TYPE_CHECKING:
    from mpdoctor.facts.model import ModelFacts
    from mpdoctor.facts.saved.graph import SavedGraphFacts
    from mpdoctor.facts.training import TrainingFacts


def diagnose(settings: Settings, progress: Progress) -> Diagnosis:
    """Examine every target and judge what was seen. Never raises for what a target does."""
    return diagnose_with_sources(settings, progress)[0]


def diagnose_with_sources(settings: Settings, progress: Progress) -> tuple[Diagnosis, Mapping[str, SourceFacts]]:
    """Like `diagnose`, together with the facts of each source file that was read, by path as shown. These facts have
    lost their events."""
    progress.stage("reading the source")

    def judge_ahead(target: Target, stage: SourceStage, own: tuple[str, ...]) -> None:
        """Judge the files by the Keras that the whole target will most likely have. If another one turns out, they are
        judged again."""
        findings_of_source(
            stage.judge, stage.facts, own, keras_of_target(target, settings, own, stage.facts, ()), settings
        )

    stage, paths = source_stage_of_targets(settings, progress, judge_ahead)
    suppressions = Suppressions((stage.facts[path] for own in paths for path in own), settings)
    examined = [
        _examine(_Read(target, own, stage, settings), suppressions, progress)
        for target, own in zip(settings.targets, paths, strict=True)
    ]
    examined = [_with_comments_judged(target, suppressions, settings) for target in examined]
    stage.save()
    progress.close()
    return _diagnosis(examined, stage, suppressions, settings), stage.facts


def _diagnosis(
    examined: list[_Examined], stage: SourceStage, suppressions: Suppressions, settings: Settings
) -> Diagnosis:
    """All targets' findings and facts as one diagnosis, with the exit status."""
    all_findings = (finding for target in examined for finding in target.findings)
    findings = findings_for_report(all_findings, stage.facts, EditedFiles(settings.unsaved, settings.edited))
    crashed = (*(crash for target in examined for crash in target.crashed), *suppressions.crashed)
    return Diagnosis(
        targets=tuple(target.report for target in examined),
        findings=tuple(findings),
        models=tuple((target.report.id, model) for target in examined for model in target.models),
        graphs=tuple((target.report.id, graph) for target in examined for graph in target.graphs),
        probes=tuple(probe for target in examined for probe in target.probes),
        rules=rule_summaries(findings, settings.docs_url),
        skipped=tuple(dict.fromkeys(_skipped(settings, examined, stage))),
        crashed=crashed,
        environment=dict(pair for target in examined for pair in target.environment),
        suppressed=suppressions.count,
        exit_code=exit_code(settings, any(target.brought_nothing for target in examined), findings, crashed),
        command=settings.command,
        version=__version__,
        fail_on=settings.fail_on,
    )


@dataclass(frozen=True)
class _Examined:
    """Everything that is known about one target."""

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


@dataclass(frozen=True)
class _Read:
    """One target, and the files of its source as they were read."""

    target: Target
    paths: tuple[str, ...]
    stage: SourceStage
    settings: Settings

    def judged_by(self, keras: JudgedBy) -> JudgedSource:
        return findings_of_source(self.stage.judge, self.stage.facts, self.paths, keras, self.settings)


def _examine(read: _Read, suppressions: Suppressions, progress: Progress) -> _Examined:
    target, paths, stage, settings = read.target, read.paths, read.stage, read.settings
    sources = tuple(stage.facts[path] for path in paths)
    not_run = reason_not_run(target, sources, settings)
    runs, crashes = ([], []) if not_run else runs_of_target(target, settings, progress)
    keras = keras_of_target(target, settings, paths, stage.facts, runs)
    judged = _judge(read, keras, runs)
    all_findings = without_needless(merged_findings(with_what_if_marked(judged.findings), _ties(target, stage)), runs)
    left = suppressions.left_of(f for f in all_findings if settings.chooses(f.code, f.name))
    left += _in_one_finding(suppressions.left_of(judged.gone), stage.facts, keras)
    shown_run = run_to_show(runs)
    last = shown_run or ExaminationFacts()
    return _Examined(
        target,
        paths,
        judged.keras,
        ran=bool(runs),
        report=_report(target, judged.keras, last, stages_of_target(target, sources, shown_run, not_run)),
        findings=tuple(left),
        models=last.models,
        graphs=last.graphs,
        probes=tuple(_probe(training, last) for training in last.trainings),
        skipped=(
            *passed_over(target, sources),
            *(unknown_policies(sources, settings) if shown_run is None else ()),
            *skipped_in_run(last),
            *further_trainings(target, last, settings),
        ),
        crashed=(*crashes, *judged.crashed),
        environment=last.environment,
        brought_nothing=brings_nothing(target, sources, all_findings, bool(last.models or last.graphs)),
    )


def _in_one_finding(gone: list[Finding], facts: Mapping[str, SourceFacts], guessed: JudgedBy) -> list[Finding]:
    if not gone:  # as in nearly all programs
        return []
    from mpdoctor.judging.removed_names import in_one_finding

    return [in_one_finding(gone, facts, guessed)]


def _probe(training: TrainingFacts, run: ExaminationFacts) -> Probe:
    from mpdoctor.semantics.live.mended_parts import went_on_with
    from mpdoctor.semantics.live.prediction_verdict import probe_from_facts

    return dataclasses.replace(probe_from_facts(training), mended=run.mended, went_on=went_on_with(run.mended))


class _Judged(NamedTuple):
    """The findings and crashes of all rules for one target, and the Keras that it was judged by. `gone`: findings that
    would hold in the guessed Keras, in code that is plainly written for an older one."""

    findings: list[Finding]
    crashed: list[Crashed]
    keras: JudgedBy
    gone: list[Finding]


def _judge(read: _Read, keras: JudgedBy, runs: list[ExaminationFacts]) -> _Judged:
    """Run all chosen rules over the target's source and over what its runs showed."""
    target, settings = read.target, read.settings
    source, keras, gone = _in_light_of_runs(read, keras, runs) if runs else read.judged_by(keras)
    judged = [
        *source,
        *_findings_of_forced_loop(target, keras, runs, settings),
        *(
            spelled(item, read.stage.facts, run.keras or keras.usual)
            for run in runs
            for item in findings_of_run(run, keras.usual, settings)
        ),
    ]
    return _Judged(
        [dataclasses.replace(item, target=target.id) for item in judged if isinstance(item, Finding)],
        [item for item in judged if isinstance(item, Crashed)],
        keras,
        [dataclasses.replace(f, target=target.id) for f in gone if settings.chooses(f.code, f.name)],
    )


def _in_light_of_runs(read: _Read, keras: JudgedBy, runs: list[ExaminationFacts]) -> JudgedSource:
    """The findings in the source under the policy that only the runs knew, as their measurements leave them."""
    from mpdoctor.judging.measured_findings import in_light_of_runs  # a check that runs nothing does without these
    from mpdoctor.source_stage.policies_of_runs import stage_under_policy_of_run

    stage = stage_under_policy_of_run(read.target, read.stage, read.paths, runs, read.settings)
    judged = dataclasses.replace(read, stage=stage).judged_by(keras)
    findings = judged.findings
    if stage is not read.stage and not read.settings.edits_after_run:
        findings = [dataclasses.replace(item, fix=None) if isinstance(item, Finding) else item for item in findings]
    return judged._replace(findings=list(in_light_of_runs(findings, runs)))


def _findings_of_forced_loop(
    target: Target, keras: JudgedBy, runs: list[ExaminationFacts], settings: Settings
) -> Iterator[Finding | Crashed]:
    """Findings in the source of a custom loop, judged as under the policy that its run was forced to."""
    if settings.assume_mixed or not any(trained_by_hand(run) for run in runs):
        return
    chosen = chosen_rules(settings)
    codes = frozenset(rule.code for rule in all_rules() if rule.shows_in_forced_loops and chosen(rule))
    forced = dataclasses.replace(settings, targets=(target,), assume_mixed=True)
    stage, (paths,) = source_stage_of_targets(forced, SILENT)
    for item in stage.judge(keras.of, codes, paths):
        yield dataclasses.replace(item, what_if=settings.policy == "auto") if isinstance(item, Finding) else item


def _report(target: Target, keras: JudgedBy, run: ExaminationFacts, stages: dict[str, Stage]) -> TargetReport:
    return TargetReport(
        id=target.id,
        path=str(target.path or target.module or target.id),
        kind=target.kind,
        keras=keras.usual,
        python=run.python,
        stages=stages,
        stand_ins=run.stand_ins,
        files_written=tuple(shown_path(path) for path in run.files_written),
        processes_started=run.processes,
        other_keras=keras.by_keras(),
    )


def _skipped(settings: Settings, examined: list[_Examined], stage: SourceStage) -> Iterator[Skipped]:
    yield from (Skipped("target", reason) for reason in settings.not_examined)
    yield from (skip for target in examined for skip in target.skipped)
    yield from not_followed(stage)


def _with_comments_judged(target: _Examined, suppressions: Suppressions, settings: Settings) -> _Examined:
    """The target with its ignore comments judged. It runs after all targets were judged, since a comment in a shared
    file may suppress what another target's program does there."""
    left, crashes = list(target.findings), list(target.crashed)
    for comment in suppressions.facts(target.paths, target.keras.of, target.ran):
        for item in findings_from_facts("in_suppression", comment, None, chosen_rules(settings)):
            if isinstance(item, Crashed):
                crashes.append(item)
            else:
                left += suppressions.left_of([dataclasses.replace(item, target=target.target.id)])
    return dataclasses.replace(target, findings=tuple(sorted_by_place(left)), crashed=tuple(crashes))


def _ties(target: Target, stage: SourceStage) -> Ties:
    """Which files belong to one program. Only in a directory this is a question: there, one of two files has to import
    the other, directly or through others."""
    if target.kind != "directory":
        return of_one_program
    return tied_by_imports({path: facts.imports for path, facts in stage.facts.items()})
