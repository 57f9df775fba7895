"""Why applied steps changed no weight."""

from __future__ import annotations

from mpdoctor.facts.causes.operations import OperationFacts
from mpdoctor.facts.frozen import dataclass


@dataclass(frozen=True)
class StandstillFacts:
    """Why applied steps moved no weight, measured on the last step; a default stands for what was not measured.

    learning_rate, schedule
        The innermost optimizer's, for the step to come, and the class of the schedule that gives it, "" for a number.
    rate_dtype
        The dtype in which that schedule returns it, "" for a number and for what is no tensor.
    gradient
        The largest finite magnitude of a gradient as the tape gives it, the loss scaled as in the training.
    factor, most
        The first of the factors by which the loss was multiplied at which a gradient was not 0; None where all were 0
        at every factor to `most`.
    reaches_output
        Whether a gradient comes to the output of the last layer, where all weights' gradients are 0.
    layer, layer_class, puts_out_zeros
        The last layer on the way back whose output gets a gradient, and whether all that it puts out is 0.
    overflow
        The first operation of the way forward that gave inf where float32 gives a number, in a step whose loss is
        finite and whose gradients are all 0: what is divided by inf passes none back.
    update, half_digit, variable, dtype
        The largest update that the same optimizer makes in float64, the variable and its dtype, and half of the last
        digit of the weight that it is made to.
    survives_rounding
        Whether such an update would change a weight in its own dtype: then it is not rounding that holds the weights.
    """

    learning_rate: float | None = None
    schedule: str = ""
    gradient: float | None = None
    factor: float | None = None
    most: float | None = None
    reaches_output: bool | None = None
    layer: str = ""
    layer_class: str = ""
    puts_out_zeros: bool = False
    overflow: OperationFacts | None = None
    update: float | None = None
    half_digit: float | None = None
    variable: str = ""
    dtype: str = ""
    survives_rounding: bool = False
    rate_dtype: str = ""
