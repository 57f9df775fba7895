"""What a short training showed."""

from __future__ import annotations

from dataclasses import dataclass

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts


@dataclass(frozen=True)
class StepFacts:
    """One training step.

    loss_scale
        The scale that this step's gradients were scaled with; None where there is no loss scaling.
    applied
        False for a skipped step.
    first_nonfinite
        Path of the first variable whose gradient was inf or NaN, None where all were finite.
    loss
        The loss of this step, unscaled; None where the training code does not show it.
    """

    loss_scale: float | None
    applied: bool
    first_nonfinite: str | None = None
    loss: float | None = None


@dataclass(frozen=True)
class TensorFacts:
    """Magnitudes of one tensor: one frame that led up to an overflow, or the overflow itself.

    largest, smallest
        Largest and smallest non-zero finite absolute value; 0.0 where there is none.
    near_limit, subnormal
        Share of the finite values beyond 0.9 · 65504, and share of non-zero ones below 2^-14.
    nonfinite
        Share of values that are inf or NaN.
    """

    layer: str
    layer_class: str
    dtype: str
    shape: tuple[int, ...]
    largest: float
    smallest: float
    near_limit: float
    subnormal: float
    nonfinite: float
    location: Location | None = None


@dataclass(frozen=True)
class CulpritFacts:
    """The first layer whose output was not finite when a failing batch was run again, and what led up to it.

    inputs_finite
        True if everything that went into the layer was finite: then the layer itself is where it broke.
    """

    step: int
    overflow: TensorFacts
    frames: tuple[TensorFacts, ...] = ()
    inputs_finite: bool = True


@dataclass(frozen=True)
class ScaleDependenceFacts:
    """One batch trained twice from the same state, at two loss scales.

    exponents
        (variable path, exponent e) where |gradient at the innermost optimizer| goes with scale^e: 0 is right, -1
        means that gradients were divided by a scale that the loss never saw (or twice), +1 that they were never
        divided.
    scaled_loss_called, unscaled_called
        Whether the training code called scale_loss / get_scaled_loss and get_unscaled_gradients while it was watched;
        None in a Keras that has no such call.
    """

    low: float
    high: float
    exponents: tuple[tuple[str, float], ...]
    scaled_loss_called: bool | None = None
    unscaled_called: bool | None = None

    @property
    def median(self) -> float:
        values = sorted(exponent for _, exponent in self.exponents)
        middle = len(values) // 2
        if not values:
            return 0.0
        return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


@dataclass(frozen=True)
class TrainingFacts:
    """A short training of the user's own model, with the user's own loss, data and train step.

    data
        "real", "synthetic" (made from the input specs) or "stand-in".
    made_up_loss
        The loss that was made up because nobody compiled the model; None where it is the user's own.
    ended
        "steps" (all that were asked for), "budget" (`--budget` was spent), "failed", "script" (the user's loop ended
        first).
    weights_changed
        Whether any trainable variable moved; None where that could not be compared.
    applied_at
        The user's line from which gradients first arrived at the optimizer: apply_gradients of a custom loop or train
        step, else the training call.
    not_looked
        (code, reason) of what could not be looked at.
    dynamic, initial_scale, growth_interval, floor
        Of the loss scale; `floor` is 1.0 in Keras 2 and None in Keras 3; all None without loss scaling.
    uses_loss_scale_factor
        Keras 3's `loss_scale_factor`: a fixed scale without any check for finite gradients.
    """

    model: ModelFacts
    data: str
    device: str
    steps_wanted: int
    steps: tuple[StepFacts, ...] = ()
    ended: str = "steps"
    made_up_loss: str | None = None
    policy: str = "float32"
    dynamic: bool | None = None
    initial_scale: float | None = None
    growth_interval: int | None = None
    floor: float | None = None
    uses_loss_scale_factor: bool = False
    weights_changed: bool | None = None
    weights_finite: bool | None = None
    jit_compile: bool = False
    scale_dependence: ScaleDependenceFacts | None = None
    culprit: CulpritFacts | None = None
    failure: FailureFacts | None = None
    applied_at: Location | None = None
    not_looked: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
