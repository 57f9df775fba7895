"""ExaminationFacts, built from the events of an examination and from how its process ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mpdoctor.examination.seen import Seen
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.machine.environment import labels_from_environment
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.semantics.live.started_programs import started_programs


class ExaminerCrashed(Exception):
    """The examiner itself broke: a defect of ours. `traceback` is its own, `facts` what was seen until then."""

    def __init__(self, traceback: str, facts: ExaminationFacts | None = None) -> None:
        super().__init__(traceback)
        self.facts = facts or ExaminationFacts()


def facts_from_seen(seen: Seen, policy: str) -> ExaminationFacts:
    """The facts of one run, from its events. Raises ExaminerCrashed."""
    if seen.crashed is not None:
        raise ExaminerCrashed(seen.crashed, _facts_until_crash(seen, policy))
    failure = seen.failure or (None if seen.ended else _sudden_end(seen))
    if failure is not None:
        failure = replace(failure, processes=started_programs(seen.processes))
    if failure is not None and failure.kind == "exited" and failure.exit_code:
        failure = replace(failure, last_words=seen.last_printed)
    models = tuple((seen.models if seen.ended else {**seen.built, **seen.models}).values())
    if not (failure or models or seen.graphs):  # the examiner itself never ends without a word of why
        failure = FailureFacts("exited", "script", exit_code=0, message="The script ended.")
    return _facts(seen, policy, models, failure)


def _facts_until_crash(seen: Seen, policy: str) -> ExaminationFacts:
    """What was seen until the process ended. No failure: that it ended was not the program's doing."""
    models = tuple({**seen.built, **seen.models}.values())
    facts = _facts(seen, policy, models, None)
    broke = ("failed", "mpdoctor itself broke")
    return replace(
        facts,
        model_status=facts.model_status if models or seen.graphs else broke,
        training_status=facts.training_status if seen.trainings else broke,
    )


def _facts(seen: Seen, policy: str, models: tuple[ModelFacts, ...], failure: FailureFacts | None) -> ExaminationFacts:
    raised = failure is not None and failure.kind == "raised"
    trainings = tuple(_without_finite_predictions(seen.trainings) if raised else seen.trainings)
    return ExaminationFacts(
        python=seen.python,
        keras=seen.keras or (models[0].keras if models else None),
        models=models,
        graphs=tuple(seen.graphs),
        trainings=trainings,
        failure=failure,
        mended=tuple(seen.mended),
        model_status=_model_status(bool(models or seen.graphs), failure),
        training_status=_training_status(seen, trainings, failure),
        not_restored=seen.not_restored,
        stand_ins=seen.stand_ins,
        files_written=seen.files_written,
        processes=started_programs(seen.processes),
        environment=tuple(labels_from_environment(seen.environment_facts()).items()),
        forced_policy=None if policy == "auto" else policy,
        passed_over=_passed_over(seen.passed_over),
        stopped_after_training=seen.stopped_after_training,
        outputs=seen.outputs,
        timing=seen.timing,
        not_timed=seen.not_timed,
    )


def _passed_over(lines: int) -> str:
    """A clause that says how many lines of the record could not be read; "" for none."""
    if not lines:
        return ""
    many = "1 line" if lines == 1 else f"{lines:,} lines"
    return (
        f"{many} of the record of this examination could not be read: the program wrote into the "
        "record, or a full disk cut it"
    )


def _sudden_end(seen: Seen) -> FailureFacts:
    died = seen.outcome != "timed-out"
    became_another = died and seen.signal is None and any(process.how == "replaced" for process in seen.processes)
    return FailureFacts(
        kind="exited" if became_another else "died" if died else "timed-out",
        during="training" if seen.training else "script",
        signal=seen.signal if died else None,
        exit_code=seen.exit_code if died else None,
        saw_model=bool(seen.models or seen.built),
        seconds=seen.seconds,
        last_words=seen.last_words,
    )


def _model_status(saw_model: bool, failure: FailureFacts | None) -> tuple[str, str]:
    if saw_model:
        return "done", ""
    if failure is not None and failure.is_plain_end:
        return "skipped", "the script ended, and no model was seen"
    return "failed", "no model was seen"


def _without_finite_predictions(trainings: Iterable[TrainingFacts]) -> Iterator[TrainingFacts]:
    """The trainings of a program that raised. Finite predictions before that say nothing of what it was about to do."""
    return (each for each in trainings if each.prediction is None or each.prediction.nonfinite)


def _training_status(seen: Seen, trainings: tuple[TrainingFacts, ...], failure: FailureFacts | None) -> tuple[str, str]:
    if seen.training_status is not None:
        return seen.training_status
    if trainings:
        failed = next((training.failed_in for training in trainings if training.failure is not None), "")
        stage = "the training step" if failed.startswith("step ") else failed
        return ("failed", f"{stage} raised") if failed else ("done", "")
    if failure is not None and failure.in_training:
        return "failed", "it ended before a step was seen"
    return "skipped", "no training call was reached"
