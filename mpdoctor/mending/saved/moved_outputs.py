"""How far a model's outputs differ between two files of it."""

from __future__ import annotations

import math

from mpdoctor.facts.saved.file import OutputFacts
from mpdoctor.mended_file import MovedOutput


def moved_outputs(
    before: tuple[OutputFacts, ...], after: tuple[OutputFacts, ...]
) -> tuple[tuple[MovedOutput, ...], str]:
    """How far each output moved, and a clause that says why outputs cannot be compared, "" where they were."""
    if [(output.name, output.numbers) for output in before] != [(output.name, output.numbers) for output in after]:
        return (), "both files put out other numbers of values"
    return tuple(_moved_output(*pair) for pair in zip(before, after, strict=True)), ""


def _moved_output(before: OutputFacts, after: OutputFacts) -> MovedOutput:
    finite = [
        (old, new)
        for old, new in zip(before.values, after.values, strict=True)
        if math.isfinite(old) and math.isfinite(new)
    ]
    absolute = max((abs(old - new) for old, new in finite), default=0.0)
    largest = max((abs(old) for old, _ in finite), default=0.0)
    return MovedOutput(
        name=before.name,
        dtype_before=before.dtype,
        dtype_after=after.dtype,
        absolute=absolute,
        relative=absolute / largest if largest else 0.0 if not absolute else math.inf,
        compared=len(finite),
        numbers=len(before.values),
        not_finite_before=sum(not math.isfinite(value) for value in before.values),
        not_finite_after=sum(not math.isfinite(value) for value in after.values),
    )
