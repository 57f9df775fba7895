"""Every event that the examiner tells, its fields and their types. A script can write into the file of the events, too:
what is none of these is no event."""

from __future__ import annotations

from typing import Literal, Mapping

from mpdoctor.facts.ending import EndingFacts
from mpdoctor.facts.environment import EnvironmentFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.saved_graph import SavedGraphFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras


@dataclass(frozen=True)
class Stage:
    """What happens now, in words for the progress bar."""

    text: str


@dataclass(frozen=True)
class Steps:
    """Training steps seen so far, and wanted."""

    done: int
    total: int


@dataclass(frozen=True)
class Note:
    """Something small about the run itself; each tells some of it, the rest is None.

    crashed
        The traceback of a defect of the examiner's own.
    training_status
        (status, reason).
    """

    python: str | None = None
    keras: Keras | None = None
    crashed: str | None = None
    training_status: tuple[Literal["done", "skipped", "failed"], str] | None = None
    not_restored: str | None = None
    stand_ins: tuple[str, ...] | None = None
    files_written: tuple[str, ...] | None = None
    stopped_after_training: str | None = None


@dataclass(frozen=True)
class End:
    """The examiner has said all it has to say."""


@dataclass(frozen=True)
class Exited:
    """How the process ended: one of the two is None."""

    signal: int | None
    exit_code: int | None


# By "event". "facts" has a "kind", too, and what it tells is an object of that kind.
EVENTS = {"stage": Stage, "steps": Steps, "note": Note, "end": End, "exited": Exited}
FACTS = {
    "model": ModelFacts,
    "built": ModelFacts,
    "graph": SavedGraphFacts,
    "training": TrainingFacts,
    "ending": EndingFacts,
    "environment": EnvironmentFacts,
    "failure": FailureFacts,
}
# The texts that decide what is judged, and how, are of these.
VALUES: Mapping[type, Mapping[str, tuple[str, ...]]] = {
    Keras: {"package": ("keras", "tf_keras", "tf.keras")},
    FailureFacts: {
        "kind": ("raised", "exited", "timed-out", "died", "unusable"),
        "during": ("start", "script", "loading", "training", "ending"),
    },
}
