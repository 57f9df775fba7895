"""The 16-bit floating-point dtypes: the policies that compute in them, and the numbers at which float16 ends."""

from __future__ import annotations

HALF = ("float16", "bfloat16")
MIXED = ("mixed_float16", "mixed_bfloat16")
HALF_POLICIES = (*HALF, *MIXED, "half")
# The compute dtype of each policy that computes in 16 bits, by its name.
SIXTEEN_BITS = {
    "float16": "float16",
    "mixed_float16": "float16",
    "bfloat16": "bfloat16",
    "mixed_bfloat16": "bfloat16",
}

EXACT = {"float16": 2048, "bfloat16": 256}  # up to which every whole number is itself

FLOAT16_LIMIT = 65504  # its largest number
LARGEST = {"float16": FLOAT16_LIMIT, "bfloat16": (2 - 2.0**-7) * 2.0**127}  # float32's own limit is infinite in both
SMALLEST_NORMAL = 2.0**-14  # 6.1e-05: what is smaller keeps fewer digits
ROUNDED_TO_ZERO = 2.0**-25  # 2.98e-08, half of its smallest number: what is not larger becomes 0
NO_RECIPROCAL = 1 / FLOAT16_LIMIT  # 1.53e-05: the reciprocal of what is smaller is inf

DEFAULT_SCALE = 2.0**15  # the first loss scale of every Keras
LOST_SCALE = SMALLEST_NORMAL  # of a loss: gradients below 1 lose digits from there on

_ROUNDED_TO_ONE = {"float16": 1 - 2.0**-12, "bfloat16": 1 - 2.0**-9}  # halfway from the last number below 1 to 1


def rounds_to_one(number: float, dtype: str) -> bool:
    """Whether a number below 1 becomes 1 in this 16-bit dtype, as 0.999 does in bfloat16."""
    return _ROUNDED_TO_ONE[dtype] <= number < 1
