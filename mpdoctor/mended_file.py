"""What mending or converting a saved model came to: the policies that changed, how far its outputs moved, and the
diagnoses before and after."""

from __future__ import annotations

from dataclasses import dataclass

from mpdoctor.finding import Diagnosis


@dataclass(frozen=True)
class ChangedLayer:
    """`path` is "" for the model itself; `before` and `after` are names of policies."""

    path: str
    class_name: str
    before: str
    after: str


@dataclass(frozen=True)
class MovedOutput:
    """One output of both files, for the same inputs.

    absolute
        The largest difference of two numbers that are finite in both.
    relative
        The same as a share of the largest magnitude before.
    compared
        How many numbers are finite in both.
    numbers
        How many were looked at: all, or evenly spread ones of a large output.
    not_finite_before, not_finite_after
        How many of these are inf or NaN.
    """

    name: str
    dtype_before: str
    dtype_after: str
    absolute: float
    relative: float
    compared: int
    numbers: int
    not_finite_before: int = 0
    not_finite_after: int = 0


@dataclass(frozen=True)
class MendedFile:
    """A saved model before and after mending or converting.

    before, after
        Of the file that was given and of the new one; None where none was written.
    is_healthy
        Whether nothing at warning or above remains in the last of them, and its training looks sound.
    output, policy
        The new file; the policy that was asked for, "" for none.
    examinations
        How many new files were examined until one was kept.
    changed
        The layers whose policy changed, in the order of the file.
    healing
        The layers that are float32 because findings named them, without the layers in them.
    kept
        (path, why, a clause) of layers that should have got another policy.
    made_by_code
        Live layers that the file does not list: the code of another layer's class makes them.
    unwrapped
        Whether a wrapper that scales the loss was taken off the optimizer.
    policy_to_set
        The global policy under which the file is to be loaded for training, because Keras puts a LossScaleOptimizer
        around its bare optimizer only then (measured: tf_keras 2.21, Keras 3.15); "" where it makes no difference.
    new_state
        Whether the state of the optimizer that the file holds is not restored when the new file is loaded.
    weights_in_half
        Whether the weights in the file are in 16 bits, and stay as coarse as that.
    moved, not_compared
        How far the outputs moved, or why nobody knows.
    """

    before: Diagnosis
    is_healthy: bool
    output: str
    policy: str = ""
    after: Diagnosis | None = None
    examinations: int = 0
    changed: tuple[ChangedLayer, ...] = ()
    healing: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    made_by_code: tuple[str, ...] = ()
    unwrapped: bool = False
    policy_to_set: str = ""
    new_state: bool = False
    weights_in_half: bool = False
    moved: tuple[MovedOutput, ...] = ()
    not_compared: str = ""

    @property
    def last(self) -> Diagnosis:
        """The diagnosis of the new file, or of the old one where none was written."""
        return self.after or self.before

    @property
    def exit_code(self) -> int:
        """The exit status: 0 where nothing remains, 1 where something does; 2 and 3 as of a check."""
        return self.last.exit_code if self.last.exit_code > 1 else int(not self.is_healthy)
