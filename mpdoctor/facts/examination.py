"""All that one run of the examiner process brought home."""

from __future__ import annotations

from dataclasses import dataclass

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras


@dataclass(frozen=True)
class ExaminationFacts:
    """What was seen of one target in the user's own interpreter.

    model_status, training_status
        (status, reason): status is "done", "skipped" or "failed".
    files_written
        Files that the script opened for writing while it ran.
    forced_policy
        The policy that the examiner forced because the program sets none (`--policy auto`); None otherwise.
    """

    python: str = ""
    keras: Keras | None = None
    models: tuple[ModelFacts, ...] = ()
    trainings: tuple[TrainingFacts, ...] = ()
    failure: FailureFacts | None = None
    model_status: tuple[str, str] = ("skipped", "")
    training_status: tuple[str, str] = ("skipped", "")
    stand_ins: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    forced_policy: str | None = None
