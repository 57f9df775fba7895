"""ExaminationFacts: everything that one run of the examiner process sent back to its parent."""

from __future__ import annotations

from mpdoctor.facts.failure import FailureFacts, MendedFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.processes import StartedProgram
from mpdoctor.facts.saved.file import OutputFacts
from mpdoctor.facts.saved.graph import SavedGraphFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras

NEARLY_ALL = 0.999


@dataclass(frozen=True)
class OperationTime:
    """The operations of one type ("MatMul") in profiled steps: how many ran, and the seconds of all together."""

    kind: str
    number: int
    seconds: float


@dataclass(frozen=True)
class LayerTime:
    """The operations in the scope of one layer, those of its gradients among them, in profiled steps: the seconds of
    all together. `dtype` is what it computes in."""

    path: str
    dtype: str
    seconds: float


@dataclass(frozen=True)
class ProfileFacts:
    """What TensorFlow's profiler saw of a few training steps on a CPU.

    steps, seconds
        How many, and how long they took together, with the profiler at work.
    busy
        Seconds of these in which at least one operation was under way.
    in_operations
        The seconds of all operations added up: of two that ran at once, both.
    operations
        By type, those that took longest first; casts are always among them where there are any.
    layers
        Those that took longest first. What no layer computes (the optimizer, the loss, a model's own operations) is in
        none of them.
    """

    steps: int
    seconds: float
    busy: float
    in_operations: float
    operations: tuple[OperationTime, ...] = ()
    layers: tuple[LayerTime, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every type is among them: what is not took no time."""
        return sum(known.seconds for known in self.operations) >= NEARLY_ALL * self.in_operations > 0


@dataclass(frozen=True)
class TimingFacts:
    """A program's own training step, compiled as the program compiles it, with nothing of the probe in it.

    of
        What a step is: "fit" or "train_on_batch" for a batch, "loop" for a call of the program's own tf.function.
    blocks
        (seconds a step, of these the seconds between two steps) of blocks of steps one after the other.
    steps_a_block, warm_up
        How many steps a block has, and how many were run before the first block.
    resident_before, resident_peak
        Bytes of memory of the process: when the training began, and at most until the last block. None where the
        system does not tell.
    device
        "CPU", "GPU".
    device_peak
        Bytes of memory of that device at most; None for a CPU, or where TensorFlow does not tell.
    casts
        How many casts between 32 and 16 bits stand in the graph of the step; None where no graph was seen.
    profile
        None where the step was not profiled: then `not_profiled` says why, a clause.
    """

    of: str
    blocks: tuple[tuple[float, float], ...]
    steps_a_block: int
    warm_up: int
    device: str = "CPU"
    resident_before: int | None = None
    resident_peak: int | None = None
    device_peak: int | None = None
    casts: int | None = None
    profile: ProfileFacts | None = None
    not_profiled: str = ""


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
    timing, not_timed
        How long a training step takes, where that was asked for; or why nobody knows, a clause.
    stopped_after_training
        The error that a script ended with after a fit() that was cut short, in one line; "" where there was none.
    files_written
        Files that the script opened for writing while it ran.
    processes
        What it started in other processes, where nothing is examined.
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
    processes: tuple[StartedProgram, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    forced_policy: str | None = None
    passed_over: str = ""
    stopped_after_training: str = ""
    outputs: tuple[OutputFacts, ...] = ()
    timing: TimingFacts | None = None
    not_timed: str = ""
