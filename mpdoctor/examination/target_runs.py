"""The runs of the examiner that one target gets: one; and where that saw no mixed precision a second one, up to the
training that has it, or under a forced policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.finding import Crashed, Skipped
from mpdoctor.progress import Progress
from mpdoctor.project.edited_files import EditedFiles
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.project.targets import Target
from mpdoctor.settings.options import FORCED_POLICY, Settings

if TYPE_CHECKING:
    from mpdoctor.program.source_facts import SourceFacts


def runs_of_target(
    target: Target, settings: Settings, progress: Progress
) -> tuple[list[ExaminationFacts], list[Crashed]]:
    """The runs of the examiner that are to be judged: one; and a second one under a forced policy if the program has no
    mixed precision."""
    from mpdoctor.examination.examination_facts import ExaminerCrashed
    from mpdoctor.examination.run import examine  # the examiner's end is loaded where it is needed

    runs: list[ExaminationFacts] = []
    try:
        runs.append(examine(target, settings, progress, settings.policy))
        if _has_no_mixed_precision(runs[0]) and _turns_it_on_later(target, runs[0], settings):
            further = examine(target, settings, progress, settings.policy, passes_float32=True)
            if _has_mixed_precision(further):  # else the script did not get on after a fit() that was shortened
                runs = [further]
        # a saved model keeps the policies of its layers, whichever is forced
        is_asked = settings.policy == "auto" and settings.what_if and not target.is_saved
        if is_asked and _has_no_mixed_precision(runs[0]) and not any(model.policy_set for model in runs[0].models):
            runs.append(examine(target, settings, progress, FORCED_POLICY))
    except ExaminerCrashed as crash:
        return [*runs, crash.facts], [Crashed("examiner", "model", str(crash))]
    return runs, []


def run_to_show(runs: list[ExaminationFacts]) -> ExaminationFacts | None:
    """The last run that saw a model: a program that fails under a forced policy is shown as it stands."""
    return next((run for run in reversed(runs) if run.models or run.graphs), runs[-1] if runs else None)


def _has_no_mixed_precision(run: ExaminationFacts) -> bool:
    """Whether no layer computes in 16 bits, no wrapper exists, and the program got to its models."""
    has_failed = run.failure is not None or any(training.failure for training in run.trainings)
    return bool(run.models) and not has_failed and not _has_mixed_precision(run)


def _has_mixed_precision(run: ExaminationFacts) -> bool:
    return any(model.computes_in_half or model.wrapper for model in run.models)


def _turns_it_on_later(target: Target, run: ExaminationFacts, settings: Settings) -> bool:
    """Whether a script's first fit() is in float32, and one that comes after it is not, as far as the source shows."""
    is_asked = settings.probe and settings.policy == "auto" and not settings.all_fits
    if not target.is_script or not is_asked:
        return False
    from mpdoctor.semantics.source.programs.further_trainings import mixed_precision_follows

    return mixed_precision_follows(_sources(target, settings), run.trainings)


def further_trainings(target: Target, run: ExaminationFacts, settings: Settings) -> Iterator[Skipped]:
    """A script ends for us where its first training does."""
    if run.stopped_after_training:
        yield Skipped("training", f"what comes after the error {run.stopped_after_training}.")
    has_trained = any(training.prediction is None for training in run.trainings)
    if not target.is_script or target.path is None or not has_trained:
        return
    from mpdoctor.semantics.source.programs.further_trainings import not_examined

    reason = not_examined(_sources(target, settings), run.trainings, settings.all_fits)
    if reason:
        yield Skipped("training", f"{reason}.")


def _sources(target: Target, settings: Settings) -> tuple[SourceFacts, ...]:
    """The files of a script with their events, which the source stage walked before, and did not keep."""
    from mpdoctor.source import facts_with_imports
    from mpdoctor.source.modules import Files

    assert target.path is not None
    files = Files(EditedFiles({}, settings.edited))
    return tuple(facts_with_imports(target.path.absolute(), shown_path(str(target.path)), files).values())
