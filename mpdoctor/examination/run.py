"""The parent's end of the examiner: what it is asked, what its events tell, and what a dead process left behind."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from mpdoctor.examination.event_reader import EventReader, shown_path
from mpdoctor.examination.kept_run import KeptRun, kept_run
from mpdoctor.examination.private_directory import private_directory
from mpdoctor.examination.process import QUIET, ExaminerProcess
from mpdoctor.examiner.process.edited_source import write_edited
from mpdoctor.examiner.protocol.event_kinds import (
    Crashed,
    Ended,
    Environment,
    Event,
    Exited,
    Failure,
    FilesWritten,
    FitEnded,
    Graph,
    KerasUsed,
    Mended,
    Model,
    ModelBuilt,
    ModelSeen,
    NotRestored,
    NotTimed,
    Outputs,
    Reference,
    Remedies,
    Stage,
    StandInsUsed,
    Started,
    Steps,
    StoppedAfterTraining,
    Timed,
    TrainedAgain,
    Training,
    TrainingStatus,
)
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.facts.environment import CHOSEN, EnvironmentFacts, labels_from_environment
from mpdoctor.facts.examination import ExaminationFacts, TimingFacts
from mpdoctor.facts.failure import FailureFacts, MendedFacts
from mpdoctor.facts.fit_ending import EndingFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.saved.file import OutputFacts
from mpdoctor.facts.saved.graph import SavedGraphFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.progress import Progress
from mpdoctor.project.interpreters import Choice, NoInterpreter, choice_for
from mpdoctor.project.targets import Target
from mpdoctor.settings.options import Settings

# Stages.
WITH_BUDGET = ("comparing with float32", "training in float32 as well", "trying remedies", "training once more")
POLL = 0.03  # seconds between two looks at the events


class ExaminerCrashed(Exception):
    """The examiner itself broke: a defect of ours. The text is its traceback."""


def examine(
    target: Target,
    settings: Settings,
    progress: Progress,
    policy: str,
    outputs: bool = False,
    timed: bool = False,
) -> ExaminationFacts:
    """Run one target in the user's own interpreter under `policy` and bring home what was seen. `outputs`: of a saved
    model what it puts out for made-up inputs, the same for each file of this model, in place of a training.
    `timed`: how long its training step takes as it is, in place of what a watched training shows.

    Raises ExaminerCrashed."""
    try:
        chosen = choice_for(target, settings.python)
    except NoInterpreter as reason:
        return ExaminationFacts(failure=FailureFacts("unusable", "start", message=str(reason)))
    with private_directory() as folder:
        request = replace(_request(target, settings, policy, folder), outputs=outputs, timed=timed)
        seen = _watched(chosen, request, settings, progress)
    facts = _facts(seen, policy)
    if not chosen.because:
        return facts
    return replace(facts, environment=(*facts.environment, (CHOSEN, f"{chosen.path}, {chosen.because}")))


def environment_from_interpreter(python: Path, settings: Settings, progress: Progress) -> EnvironmentFacts:
    """Ask an interpreter what it is and computes on; nothing else is run there.

    Raises ExaminerCrashed."""
    with private_directory() as folder:
        request = Request("environment", None, None, None, (), str(folder / "events.jsonl"))
        seen = _watched(Choice(python), request, settings, progress)
    if seen.crashed is not None:
        raise ExaminerCrashed(seen.crashed)
    known = seen.environment_facts()
    if seen.ended or known.problem:
        return known
    how = "did not come to an end" if seen.outcome == "timed-out" else "killed the process"
    return replace(known, problem=f"importing TensorFlow {how}. Its last words: {seen.last_words or 'none'}")


def _request(target: Target, settings: Settings, policy: str, folder: Path) -> Request:
    return Request(
        kind=target.kind,
        path=str(target.path.resolve()) if target.path else None,
        module=target.module,
        factory=target.factory,
        arguments=settings.script_args,
        events=str(folder / "events.jsonl"),
        probe=settings.probe,
        steps=settings.steps,
        budget=settings.budget,
        policy=policy,
        seed=settings.seed,
        custom_objects=settings.custom_objects,
        allow_code_in_file=settings.allow_code_in_file,
        all_fits=settings.all_fits,
        what_if=settings.what_if,
        edited=write_edited(str(folder / "edited"), settings.edited) if settings.edited else None,
        second_training=settings.second_training,
        reference=settings.reference,
        recorded_batch=str(settings.recorded_batch) if settings.recorded_batch else None,
        holds_policy=settings.holds_policy,
    )


def _environment(settings: Settings) -> dict[str, str]:
    return {**os.environ, **({"CUDA_VISIBLE_DEVICES": "-1"} if settings.device == "cpu" else {})}


# --- what the events tell -----------------------------------------------------------------------------------------
@dataclass
class _Seen:
    """What the events have told so far; and in the end, how the process ended: "ended" by itself or "timed-out"."""

    python: str = ""
    keras: Keras | None = None
    crashed: str | None = None
    described: dict[int, ModelFacts] = field(default_factory=dict)  # by the number that events name them by
    models: dict[str, ModelFacts] = field(default_factory=dict)
    built: dict[str, ModelFacts] = field(default_factory=dict)  # compiled, and perhaps never looked at again
    graphs: list[SavedGraphFacts] = field(default_factory=list)
    trainings: list[TrainingFacts] = field(default_factory=list)
    with_end: int = 0  # trainings whose end was told, too
    training_status: tuple[str, str] | None = None
    failure: FailureFacts | None = None
    mended: list[MendedFacts] = field(default_factory=list)
    outputs: tuple[OutputFacts, ...] = ()
    timing: TimingFacts | None = None
    not_timed: str = ""
    steps: int = 0
    budgets: int = 0  # of what has begun that has a time of its own: steps, trials of remedies, a second training
    environment: EnvironmentFacts = field(default_factory=EnvironmentFacts)
    not_restored: str = ""
    stand_ins: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    stopped_after_training: str = ""
    signal: int | None = None
    exit_code: int | None = None
    training: bool = False
    ended: bool = False
    outcome: str = ""
    seconds: float = 0.0
    last_words: str = ""  # of stderr
    last_printed: str = ""  # of stdout and stderr
    passed_over: int = 0  # lines of the record that were no events, or named a model that no event had described

    def take(self, event: Event, progress: Progress) -> None:
        match event:
            case Stage() | Steps():
                self._take_progress(event, progress)
            case Remedies() | TrainedAgain() | Reference():
                self._take_what_became_of_training(event)
            case Model() | ModelBuilt() | ModelSeen() | Training() | FitEnded():
                self._take_model_or_training(event)
            case Started(python):
                self.python = python
            case KerasUsed(keras):
                self.keras = keras
            case Crashed(traceback):
                self.crashed = traceback
            case Environment(environment):
                self.environment = environment
            case Graph(graph):
                self.graphs.append(replace(graph, path=shown_path(graph.path)))
            case TrainingStatus(status, reason):
                self.training_status = (status, reason)
            case Failure(failure):
                self.failure = failure
            case Mended(mended):
                self.mended.append(mended)
            case Outputs() | Timed() | NotTimed():
                self._take_measured(event)
            case NotRestored(what):
                self.not_restored = what
            case StandInsUsed(names):
                self.stand_ins = names
            case FilesWritten(paths):
                self.files_written = paths
            case StoppedAfterTraining(error):
                self.stopped_after_training = error
            case Ended():
                self.ended = True
            case Exited(number, exit_code):
                self.signal, self.exit_code = number, exit_code
            case _:
                _assert_never(event)

    def _take_measured(self, event: Outputs | Timed | NotTimed) -> None:
        match event:
            case Outputs(outputs):
                self.outputs = outputs
            case Timed(timing):
                self.timing = timing
            case NotTimed(reason):
                self.not_timed = reason
            case _:
                _assert_never(event)

    def _take_progress(self, event: Stage | Steps, progress: Progress) -> None:
        match event:
            case Stage(text):
                self.training = self.training or text == "training"
                self.budgets += text in WITH_BUDGET
                progress.stage(text)
            case Steps(done, total):
                self.budgets += bool(done) and not self.steps
                self.steps = done
                progress.steps(done, total)

    def _take_what_became_of_training(self, event: Remedies | TrainedAgain | Reference) -> None:
        which = event.training
        if not -len(self.trainings) <= which < 0:
            self.passed_over += 1
            return
        training = self.trainings[which]
        match event:
            case Remedies(_, tried):
                self.trainings[which] = replace(training, remedies=tried)
            case TrainedAgain(_, second):
                self.trainings[which] = replace(training, second=second)
            case Reference(_, reference):
                self.trainings[which] = replace(training, reference=reference)
            case _:
                _assert_never(event)

    def _take_model_or_training(self, event: Model | ModelBuilt | ModelSeen | Training | FitEnded) -> None:
        match event:
            case Model(number, facts, layers_of):
                self._describe(number, facts, layers_of)
            case ModelBuilt(number) | ModelSeen(number) | Training(number) if number not in self.described:
                self.passed_over += 1
            case FitEnded(ending):
                new = self.trainings[self.with_end :]
                self.trainings[self.with_end :] = [_with_ending(training, ending) for training in new]
                self.with_end = len(self.trainings)
            case ModelBuilt(number):
                self.built[self.described[number].id] = self.described[number]
            case ModelSeen(number):
                self.models[self.described[number].id] = self.described[number]
            case Training(number, training):
                self.trainings.append(replace(training, model=self.described[number]))
            case _:
                _assert_never(event)

    def _describe(self, number: int, facts: ModelFacts, layers_of: int | None) -> None:
        if layers_of is None:
            self.described[number] = facts
        elif layers_of in self.described:
            self.described[number] = replace(facts, layers=self.described[layers_of].layers)
        else:
            self.passed_over += 1

    def environment_facts(self) -> EnvironmentFacts:
        """Without the variables that mpdoctor itself has set there."""
        known = self.environment.variables
        variables = {name: value for name, value in known.items() if name in os.environ or name not in QUIET}
        return replace(self.environment, variables=variables)


def _assert_never(event: NoReturn) -> NoReturn:
    """As of typing since Python 3.11: the type checker finds an event that no case takes."""
    raise AssertionError(f"nobody takes {event}")


def _with_ending(training: TrainingFacts, ending: EndingFacts) -> TrainingFacts:
    """What its fit() ended with, after the last step that was looked at."""
    not_looked = (*training.not_looked, *ending.not_looked)
    return replace(training, failure=training.failure or ending.failure, not_looked=not_looked)


def _watched(chosen: Choice, request: Request, settings: Settings, progress: Progress) -> _Seen:
    """Until the examiner ends, or no training step was reached in time, or a step never returns."""
    written = Path(request.events).with_name("request.json")
    written.touch(mode=0o600, exist_ok=False)  # the script's arguments may hold a password
    written.write_text(request.to_json(), encoding="utf-8")
    kept = kept_run(settings.keep_run)
    if kept.request is not None:
        _keep(request, kept)
    reader = EventReader(Path(request.events), kept.events)
    progress.stage(f"starting {chosen.path if chosen.because else chosen.path.name}")
    shown = sys.stderr.buffer if settings.show_output else None
    process = ExaminerProcess(chosen.path, written, _environment(settings), kept.stderr, shown)
    seen = _Seen()
    allowed = settings.timeout  # seconds since the start, until the next thing is told
    begun = 0
    try:
        while not seen.outcome:
            ended = process.has_ended()
            _take_new(reader, seen, progress)
            if seen.budgets > begun:  # what has a budget of its own has just begun
                begun, allowed = seen.budgets, process.seconds + settings.budget + settings.timeout
            if ended or seen.ended:
                seen.outcome = "ended"
            elif process.seconds > allowed:
                seen.outcome = "timed-out"
            elif not reader.is_behind:
                time.sleep(POLL)
    finally:
        process.end()
    seen.seconds = process.seconds
    while not seen.ended:
        _take_new(reader, seen, progress)
        if not reader.is_behind:
            break
    seen.passed_over += reader.passed_over
    if seen.signal is None and seen.exit_code is None:
        seen.signal, seen.exit_code = process.signal_and_exit_code()
    seen.last_words, seen.last_printed = process.last_words(), process.last_printed()
    reader.close()
    return seen


def _keep(request: Request, kept: KeptRun) -> None:
    """What was asked, with the edited text where it will be found afterwards."""
    assert kept.request is not None and kept.edited is not None
    if request.edited is not None:
        manifest = Path(request.edited)
        shutil.copytree(manifest.parent, kept.edited)
        request = replace(request, edited=str((kept.edited / manifest.name).absolute()))
    kept.request.write_text(request.to_json(), encoding="utf-8")


def _take_new(reader: EventReader, seen: _Seen, progress: Progress) -> None:
    for event in reader.new():
        seen.take(event, progress)


# --- what it brought home -----------------------------------------------------------------------------------------
def _facts(seen: _Seen, policy: str) -> ExaminationFacts:
    if seen.crashed is not None:
        raise ExaminerCrashed(seen.crashed)
    failure = seen.failure or (None if seen.ended else _sudden_end(seen))
    if failure is not None and failure.kind == "exited" and failure.exit_code:
        failure = replace(failure, last_words=seen.last_printed)
    models = tuple((seen.models if seen.ended else {**seen.built, **seen.models}).values())
    if not (failure or models or seen.graphs):  # the examiner itself never ends without a word of why
        failure = FailureFacts("exited", "script", exit_code=0, message="The script ended.")
    return ExaminationFacts(
        python=seen.python,
        keras=seen.keras or (models[0].keras if models else None),
        models=models,
        graphs=tuple(seen.graphs),
        trainings=tuple(seen.trainings),
        failure=failure,
        mended=tuple(seen.mended),
        model_status=_model_status(bool(models or seen.graphs), failure),
        training_status=_training_status(seen, failure),
        not_restored=seen.not_restored,
        stand_ins=seen.stand_ins,
        files_written=seen.files_written,
        environment=tuple(labels_from_environment(seen.environment_facts()).items()),
        forced_policy=None if policy == "auto" else policy,
        passed_over=_passed_over(seen.passed_over),
        stopped_after_training=seen.stopped_after_training,
        outputs=seen.outputs,
        timing=seen.timing,
        not_timed=seen.not_timed,
    )


def _passed_over(lines: int) -> str:
    """In words; "" for none."""
    if not lines:
        return ""
    many = "1 line" if lines == 1 else f"{lines:,} lines"
    return (
        f"{many} of the record of this examination could not be read: the program wrote into the "
        "record, or a full disk cut it"
    )


def _sudden_end(seen: _Seen) -> FailureFacts:
    died = seen.outcome != "timed-out"
    return FailureFacts(
        kind="died" if died else "timed-out",
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


def _training_status(seen: _Seen, failure: FailureFacts | None) -> tuple[str, str]:
    if seen.training_status is not None:
        return seen.training_status
    if seen.trainings:
        failed = next((training.failed_in for training in seen.trainings if training.failure is not None), "")
        what = "the training step" if failed.startswith("step ") else failed
        return ("failed", f"{what} raised") if failed else ("done", "")
    if failure is not None and failure.in_training:
        return "failed", "it ended before a step was seen"
    return "skipped", "no training call was reached"
