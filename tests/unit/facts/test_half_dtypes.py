"""Numbers of the 16-bit dtypes, beside those of the libraries that have them."""

from __future__ import annotations

import numpy as np
import pytest

from mpdoctor.facts.half_dtypes import rounds_to_one


def in_bfloat16(number: float) -> float:
    """To the nearest bfloat16, which keeps the upper half of a float32's bits; ties to the even one."""
    bits = int(np.float32(number).view(np.uint32))
    kept = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(np.uint32(kept).view(np.float32))


@pytest.mark.parametrize(("dtype", "rounded"), [("float16", lambda x: float(np.float16(x))), ("bfloat16", in_bfloat16)])
def test_which_numbers_round_to_one(dtype: str, rounded: object) -> None:
    near = [1 - digit * 2.0**-14 for digit in range(200)]
    assert [rounds_to_one(x, dtype) for x in near] == [rounded(x) == 1 and x < 1 for x in near]  # type: ignore[operator]
