"""Collects the contents of an examination's events: one `case` for each kind of event."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import NoReturn

from mpdoctor.examination.event_reader import shown_path
from mpdoctor.examination.process import QUIET
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
    HiddenOverflow,
    InnerGradients,
    KerasUsed,
    Mended,
    Model,
    ModelBuilt,
    ModelSeen,
    NotRestored,
    NotTimed,
    Outputs,
    ProcessStarted,
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
from mpdoctor.facts.examination import TimingFacts
from mpdoctor.facts.failure import FailureFacts, MendedFacts
from mpdoctor.facts.fit_ending import EndingFacts
from mpdoctor.facts.machine.environment import EnvironmentFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.processes import StartedProcess
from mpdoctor.facts.saved.file import OutputFacts
from mpdoctor.facts.saved.graph import SavedGraphFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.progress import Progress

# Stages.
WITH_BUDGET = ("comparing with float32", "training in float32 as well", "trying remedies", "training once more")

OfTraining = Remedies | TrainedAgain | Reference | HiddenOverflow | InnerGradients


@dataclass
class Seen:
    """Collects what the events say, and in the end how the process ended: "ended" by itself or "timed-out"."""

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
    processes: list[StartedProcess] = field(default_factory=list)
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
            case Remedies() | TrainedAgain() | Reference() | HiddenOverflow() | InnerGradients():
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
                self.failure = _with_shown_folder(failure)
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
            case ProcessStarted(process):
                self.processes.append(process)
            case StoppedAfterTraining() | Ended() | Exited():
                self._take_end(event)
            case _:
                _assert_never(event)

    def _take_end(self, event: StoppedAfterTraining | Ended | Exited) -> None:
        match event:
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

    def _take_what_became_of_training(self, event: OfTraining) -> None:
        number = event.training
        if not -len(self.trainings) <= number < 0:
            self.passed_over += 1
            return
        training = self.trainings[number]
        match event:
            case Remedies(_, tried):
                self.trainings[number] = replace(training, remedies=tried)
            case TrainedAgain(_, second):
                self.trainings[number] = replace(training, second=second)
            case Reference(_, reference):
                self.trainings[number] = replace(training, reference=reference)
            case HiddenOverflow(_, overflow):
                self.trainings[number] = replace(training, hidden_overflow=overflow)
            case InnerGradients(_, gradients):
                self.trainings[number] = replace(training, inner_gradients=gradients)
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
        """The environment without the variables that mpdoctor itself has set."""
        known = self.environment.variables
        variables = {name: value for name, value in known.items() if name in os.environ or name not in QUIET}
        return replace(self.environment, variables=variables)


def _assert_never(event: NoReturn) -> NoReturn:
    """`typing.assert_never` (new in Python 3.11): the type checker reports an event that no `case` takes."""
    raise AssertionError(f"nobody takes {event}")


def _with_shown_folder(failure: FailureFacts) -> FailureFacts:
    folder = failure.missing_module_in
    return replace(failure, missing_module_in=shown_path(folder)) if folder else failure


def _with_ending(training: TrainingFacts, ending: EndingFacts) -> TrainingFacts:
    """What its fit() ended with, after the last step that was looked at."""
    not_looked = (*training.not_looked, *ending.not_looked)
    return replace(training, failure=training.failure or ending.failure, not_looked=not_looked)
