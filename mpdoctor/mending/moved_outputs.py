"""How far the outputs of a model moved from one file to another."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mpdoctor.facts.outputs import OutputFacts


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


def moved_outputs(
    before: tuple[OutputFacts, ...], after: tuple[OutputFacts, ...]
) -> tuple[tuple[MovedOutput, ...], str]:
    """With a clause that says why they cannot be compared; "" where they were."""
    if [(one.name, one.numbers) for one in before] != [(one.name, one.numbers) for one in after]:
        return (), "both files put out other numbers of values"
    return tuple(_moved(*pair) for pair in zip(before, after, strict=True)), ""


def _moved(before: OutputFacts, after: OutputFacts) -> MovedOutput:
    finite = [
        (one, other)
        for one, other in zip(before.values, after.values, strict=True)
        if math.isfinite(one) and math.isfinite(other)
    ]
    absolute = max((abs(one - other) for one, other in finite), default=0.0)
    largest = max((abs(one) for one, _ in finite), default=0.0)
    return MovedOutput(
        before.name,
        before.dtype,
        after.dtype,
        absolute,
        absolute / largest if largest else 0.0 if not absolute else math.inf,
        len(finite),
        len(before.values),
        sum(not math.isfinite(value) for value in before.values),
        sum(not math.isfinite(value) for value in after.values),
    )
