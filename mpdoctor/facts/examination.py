"""All that one run of the examiner process brought home."""

from __future__ import annotations

from mpdoctor.facts.failure import FailureFacts, MendedFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.saved_file import OutputFacts
from mpdoctor.facts.saved_graph import SavedGraphFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras


@dataclass(frozen=True)
class ExaminationFacts:
    """What was seen of one target in the user's own interpreter.

    model_status, training_status
        (status, reason): status is "done", "skipped" or "failed".
    not_restored
        What a saved file holds and Keras could not restore, and why; "" where all of it was.
    passed_over
        How much of what came home was no event of the examiner's, in words; "" where all of it was.
    mended
        What raised under the forced policy and was computed in float32 from there on, in the order in which it did.
    outputs
        What a saved model puts out, where that was asked for.
    stopped_after_training
        The error that a script ended with after a fit() that was cut short, in one line; "" where there was none.
    files_written
        Files that the script opened for writing while it ran.
    forced_policy
        The policy that the examiner forced because the program sets none (`--policy auto`); None otherwise.
    """

    python: str = ""
    keras: Keras | None = None
    models: tuple[ModelFacts, ...] = ()
    graphs: tuple[SavedGraphFacts, ...] = ()
    trainings: tuple[TrainingFacts, ...] = ()
    failure: FailureFacts | None = None
    mended: tuple[MendedFacts, ...] = ()
    model_status: tuple[str, str] = ("skipped", "")
    training_status: tuple[str, str] = ("skipped", "")
    stand_ins: tuple[str, ...] = ()
    not_restored: str = ""
    files_written: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    forced_policy: str | None = None
    passed_over: str = ""
    stopped_after_training: str = ""
    outputs: tuple[OutputFacts, ...] = ()
