"""How gradients and loss follow the loss scale: one batch, trained at two."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location

SOME = 0.5  # an exponent nearer to 0 than this is 0, measured on a batch


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
    loss
        The exponent of the loss that the tape differentiates: 1 where it is scaled, 0 where it is not. None where no
        tape was seen.
    applied
        The median exponent of the gradients where they are handed to the outermost optimizer.
    unscaled_calls
        How often get_unscaled_gradients is called in a step.
    on_the_way
        What the training code itself does with the gradients between the tape and the optimizer: "divided" by just
        the loss scale, "changed" otherwise (clipped), "" nothing; "added up" where several tapes gave gradients of one
        variable, which are neither applied as they are nor divided.
    divided_by
        The number by which the training code divides all gradients on that way, the same at both loss scales; None
        where there is no such number.
    divided_on_the_way
        Whether gradients arrive far smaller than the tape gave them, by more than the root of the loss scale: a number
        stands in the place of the scale.
    multiplied_by
        The numbers above 1 by which a step multiplies at both loss scales, among them a loss scale that the training
        code read before.
    wrappers
        How many LossScaleOptimizers stand around each other.
    loss_dtype
        Of the loss that is scaled; "" where none is.
    loss_too_large
        That loss, where it is finite and its product with the scale `high` is not.
    scaled_at
        The user's line that scales it; None where Keras does.
    scaled_before_at
        The user's line that had scaled it already; None where it is scaled once.
    scaled_by_another
        Whether the loss that the tape differentiates was scaled by another optimizer than this one.
    scaled_by_its_wrapper
        Whether that other optimizer is a wrapper around this one, which the training code bypasses.
    """

    low: float
    high: float
    exponents: tuple[tuple[str, float], ...]
    scaled_loss_called: bool | None = None
    unscaled_called: bool | None = None
    loss: float | None = None
    applied: float | None = None
    unscaled_calls: int = 0
    on_the_way: str = ""
    wrappers: int = 1
    loss_dtype: str = ""
    loss_too_large: float | None = None
    scaled_at: Location | None = None
    scaled_before_at: Location | None = None
    scaled_by_another: bool = False
    scaled_by_its_wrapper: bool = False
    divided_by: float | None = None
    divided_on_the_way: bool = False
    multiplied_by: tuple[float, ...] = ()

    @property
    def is_scaled(self) -> bool:
        """Whether the loss that the tape differentiates was scaled: measured, else by the calls that were seen."""
        return self.loss > SOME if self.loss is not None else bool(self.scaled_loss_called)

    @property
    def keeps_foreign_scale(self) -> bool:
        """Whether the gradients are applied with the loss scale of another optimizer."""
        return self.grows and self.scaled_by_another and not self.divided_on_the_way

    @property
    def shrinks(self) -> bool:
        return self.median < -SOME

    @property
    def grows(self) -> bool:
        return self.median > SOME

    @property
    def median(self) -> float:
        values = sorted(exponent for _, exponent in self.exponents)
        middle = len(values) // 2
        if not values:
            return 0.0
        return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
