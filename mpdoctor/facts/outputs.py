"""What a saved model puts out for made-up inputs, so that two files can be compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutputFacts:
    """One output of a model, computed with `training=False`.

    name
        As the model names it, or its position.
    dtype
        What the model puts out: "float16", "float32".
    numbers
        How many numbers it put out for all samples together.
    values
        These numbers in float64, in order; of more than MOST every n-th, the same n for the same number of them.
    """

    name: str
    dtype: str
    numbers: int
    values: tuple[float, ...]


SAMPLES = 32  # that are put in
MOST = 20_000  # values of an output
