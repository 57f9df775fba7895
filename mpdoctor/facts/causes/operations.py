"""The one operation that made the first number that is not finite, and what went into it."""

from __future__ import annotations

import math

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.location import Location

UNCOUNTABLE = 65520  # the first whole number that is inf as a float16


@dataclass(frozen=True)
class NamedOperand:
    """What the user's line calls a tensor that went into an operation, and its largest finite magnitude; or a number,
    and its value."""

    name: str
    largest: float


@dataclass(frozen=True)
class OperationFacts:
    """The one operation of TensorFlow that made inf or NaN out of finite numbers.

    name
        TensorFlow's name for it: "Square", "Sum", "Cast", "SqrtGrad".
    where
        "layer" (in a layer's call), "loss" (outside of all layers), "scaling" (the loss times the loss scale),
        "gradient" (on the way back), "loop" (what the training code does with the gradients).
    result
        What it made: "inf", "-inf" or "nan".
    largest, smallest, holds_zero
        Largest and smallest non-zero finite magnitude of its inputs, and whether a 0 was among them.
    elements
        How many numbers the largest input holds.
    averaged
        How many numbers each result of a mean is made of; 0 of any other operation.
    in_float32
        The largest magnitude of the same operation computed in float32, inf included; None where that cannot be told.
    given
        Where what went in was not finite before any operation: "data" (what the model was given, or another part of
        the batch), "labels", or "constant" (a weight that an operation read itself among them); else "".
    from_data
        True if it cast what the model was given, and nothing that depends on a weight.
    masked
        True if -inf went in, which masks are made of, and nothing else that is not finite.
    location
        The user's line that ran it; for an operation on the way back, the line whose gradient it is.
    operands
        Those inputs that this line has a name for, of an operation on the way forward.
    constant
        Where `given` is "constant": what this line calls a number that 16 bits do not hold ("self.factor", "1e7"), and
        the number; None where it names none.
    """

    name: str
    where: str
    dtype: str
    result: str
    largest: float = 0.0
    smallest: float = 0.0
    holds_zero: bool = False
    elements: int = 1
    in_float32: float | None = None
    given: str = ""
    from_data: bool = False
    masked: bool = False
    location: Location | None = None
    averaged: int = 0
    operands: tuple[NamedOperand, ...] = ()
    constant: NamedOperand | None = None

    @property
    def has_no_gradient(self) -> bool:
        """Whether it is a mean whose gradient is 0, whatever the loss scale: TensorFlow divides it by the count, cast
        to float16."""
        return self.dtype == "float16" and self.averaged >= UNCOUNTABLE

    @property
    def only_on_this_device(self) -> bool:
        """Whether the true result fits into float16, so that the kernel of this device lost it on the way: CPUs sum
        and average in float16, GPUs in float32. Of a mean whose gradient is 0 that would be half of the truth."""
        fits = self.in_float32 is not None and self.in_float32 <= FLOAT16_LIMIT
        return self.dtype == "float16" and fits and not self.has_no_gradient


def excuse_of(operation: OperationFacts | None, nan: int) -> str:
    """Why float16 is not to blame for what this operation made inf or NaN (`nan`: how many NaN), as PredictionFacts say
    it; "" where it is to blame, or where that is not known."""
    if operation is None:
        return ""
    if operation.given == "data":
        return "data"
    if operation.given == "constant" and not nan:
        return "constant"
    if operation.dtype != "float16":
        return "range"
    in_float32 = operation.in_float32
    return "" if nan or (in_float32 is not None and math.isfinite(in_float32)) else "range"
