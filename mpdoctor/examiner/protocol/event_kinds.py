"""The events that the examiner sends: one dataclass each. An event's name on the wire is its class name; names, fields
and types stand here and nowhere else. A script can write into the file of the events, too: what is none of these is
refused.

Imported by both processes: Python 3.8, standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union, get_args

from mpdoctor.facts.causes.hidden_overflow import HiddenOverflowFacts
from mpdoctor.facts.examination import TimingFacts
from mpdoctor.facts.failure import FailureFacts, MendedFacts
from mpdoctor.facts.fit_ending import EndingFacts
from mpdoctor.facts.machine.environment import EnvironmentFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.processes import StartedProcess
from mpdoctor.facts.reference import InnerGradientFacts, ReferenceFacts
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.saved.file import OutputFacts
from mpdoctor.facts.saved.graph import SavedGraphFacts
from mpdoctor.facts.training import SecondTrainingFacts, TrainingFacts
from mpdoctor.facts.versions import Keras


# --- progress -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Stage:
    """What the examiner does now, in words for the progress bar."""

    text: str


@dataclass(frozen=True)
class Steps:
    """Training steps seen so far, and wanted."""

    done: int
    total: int


# --- the process --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Started:
    """The version of the Python that examines, "3.8.1"."""

    python: str


@dataclass(frozen=True)
class Crashed:
    """A defect of the examiner's own ended it."""

    traceback: str


@dataclass(frozen=True)
class Ended:
    """The examiner has sent all that it has to send."""


@dataclass(frozen=True)
class Exited:
    """How the process ended, from the one that supervises it: one of the two is None."""

    signal: int | None
    exit_code: int | None


# --- what was seen ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Environment:
    facts: EnvironmentFacts


@dataclass(frozen=True)
class KerasUsed:
    keras: Keras


@dataclass(frozen=True)
class Model:
    """Facts of a model, sent once for all the events that mean it by `number`. After a change the model is sent anew,
    with a number of its own; its layers, by far the most of it, only if they have changed.

    layers_of
        The number of the earlier model whose layers are the same: `facts` has none then. None where it has its own.
    """

    number: int
    facts: ModelFacts
    layers_of: int | None = None


@dataclass(frozen=True)
class ModelBuilt:
    """The program has made this model and goes on: it counts where no ModelSeen comes after it."""

    model: int


@dataclass(frozen=True)
class ModelSeen:
    """The model as it is judged, by its number; a later one with the same id replaces it."""

    model: int


@dataclass(frozen=True)
class Graph:
    facts: SavedGraphFacts


@dataclass(frozen=True)
class Training:
    """A short training of the model with this number. In `facts` NO_MODEL stands in its place."""

    model: int
    facts: TrainingFacts


@dataclass(frozen=True)
class Remedies:
    """The remedies that were tried against the failing steps of a training. `training`: which of the Training events so
    far that is, -1 for the last one."""

    training: int
    tried: tuple[RemedyFacts, ...]


@dataclass(frozen=True)
class TrainedAgain:
    """What came of training once more. `training`: as in Remedies."""

    training: int
    facts: SecondTrainingFacts


@dataclass(frozen=True)
class Reference:
    """What steps lose against their float32 twins. `training`: as in Remedies."""

    training: int
    facts: ReferenceFacts


@dataclass(frozen=True)
class HiddenOverflow:
    """A layer in which a result overflows and no step is skipped. `training`: as in Remedies."""

    training: int
    facts: HiddenOverflowFacts


@dataclass(frozen=True)
class InnerGradients:
    """What 16 bits lose of gradients that are taken while another tape records. `training`: as in Remedies."""

    training: int
    facts: tuple[InnerGradientFacts, ...]


@dataclass(frozen=True)
class FitEnded:
    """How the end of the fit() of the last trainings went."""

    facts: EndingFacts


@dataclass(frozen=True)
class TrainingStatus:
    """Whether the model was trained, where no training tells."""

    status: Literal["done", "skipped", "failed"]
    reason: str


@dataclass(frozen=True)
class Failure:
    facts: FailureFacts


@dataclass(frozen=True)
class Mended:
    """Under a forced policy this was computed in float32, and the program went on."""

    facts: MendedFacts


@dataclass(frozen=True)
class Outputs:
    """The outputs of a saved model, where these were asked for instead of a training."""

    facts: tuple[OutputFacts, ...]


@dataclass(frozen=True)
class Timed:
    """How long the training step takes, where that was asked for."""

    facts: TimingFacts


@dataclass(frozen=True)
class NotTimed:
    """Why nothing was timed, a clause."""

    reason: str


@dataclass(frozen=True)
class NotRestored:
    """What a saved file holds and Keras could not restore, and why."""

    what: str


@dataclass(frozen=True)
class StandInsUsed:
    """Names of the data sets that made-up data took the place of."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class FilesWritten:
    """Files that the script opened for writing."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class ProcessStarted:
    """A process that a line of the program's started."""

    facts: StartedProcess


@dataclass(frozen=True)
class StoppedAfterTraining:
    """The error, in one line, with which a script ended after a fit() that was cut short."""

    error: str


Event = Union[
    Stage,
    Steps,
    Started,
    Crashed,
    Ended,
    Exited,
    Environment,
    KerasUsed,
    Model,
    ModelBuilt,
    ModelSeen,
    Graph,
    Training,
    Remedies,
    TrainedAgain,
    HiddenOverflow,
    InnerGradients,
    Reference,
    FitEnded,
    TrainingStatus,
    Failure,
    Mended,
    Outputs,
    Timed,
    NotTimed,
    NotRestored,
    StandInsUsed,
    FilesWritten,
    ProcessStarted,
    StoppedAfterTraining,
]
EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
NO_MODEL = ModelFacts(id="", name="", class_name="", policy="", keras=Keras())
