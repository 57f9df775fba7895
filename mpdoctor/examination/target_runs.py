"""The runs of the examiner that one target gets: one, and a second one under a forced policy where the program has no
mixed precision."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.finding import Crashed, Skipped
from mpdoctor.progress import Progress
from mpdoctor.project.edited_files import EditedFiles
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.project.targets import SOURCE_ONLY, Target
from mpdoctor.settings.options import FORCED_POLICY, Settings


def runs_of_target(
    target: Target, settings: Settings, progress: Progress, unreadable: bool
) -> tuple[list[ExaminationFacts], list[Crashed]]:
    """The runs of the examiner: one; and a second one under a forced policy if the program has no mixed precision."""
    if settings.static or unreadable or target.kind in SOURCE_ONLY or not settings.is_about_one:
        return [], []
    from mpdoctor.examination.examination_facts import ExaminerCrashed
    from mpdoctor.examination.run import examine  # the examiner's end is loaded where it is needed

    runs: list[ExaminationFacts] = []
    try:
        runs.append(examine(target, settings, progress, settings.policy))
        # a saved model keeps the policies of its layers, whichever is forced
        if settings.policy == "auto" and settings.what_if and not target.is_saved and _has_no_mixed_precision(runs[0]):
            runs.append(examine(target, settings, progress, FORCED_POLICY))
    except ExaminerCrashed as crash:
        return [*runs, crash.facts], [Crashed("examiner", "model", str(crash))]
    return runs, []


def run_to_show(runs: list[ExaminationFacts]) -> ExaminationFacts | None:
    """The last run that saw a model: a program that fails under a forced policy is shown as it stands."""
    return next((run for run in reversed(runs) if run.models or run.graphs), runs[-1] if runs else None)


def _has_no_mixed_precision(run: ExaminationFacts) -> bool:
    """No layer computes in 16 bits, no wrapper exists, nobody set a policy, and the program got to its models."""
    return bool(run.models) and run.failure is None and not any(
        model.computes_in_half or model.wrapper or model.policy_set for model in run.models
    ) and not any(training.failure for training in run.trainings)  # fmt: skip


def further_trainings(target: Target, run: ExaminationFacts, settings: Settings) -> Iterator[Skipped]:
    """A script ends for us where its first training does."""
    if run.stopped_after_training:
        yield Skipped("training", f"what comes after the error {run.stopped_after_training}.")
    has_trained = any(training.prediction is None for training in run.trainings)
    if target.kind != "script" or target.path is None or not has_trained:
        return
    from mpdoctor.semantics.source.programs.further_trainings import not_examined
    from mpdoctor.source import facts_with_imports  # walked before in the source stage, which keeps no events
    from mpdoctor.source.modules import Files

    files = Files(EditedFiles({}, settings.edited))
    sources = facts_with_imports(target.path.absolute(), shown_path(str(target.path)), files)
    told = not_examined(sources.values(), run.trainings, settings.all_fits)
    if told:
        yield Skipped("training", f"{told}.")
