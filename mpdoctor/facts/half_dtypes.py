"""The 16-bit floating-point dtypes, and the dtype policies that compute in them."""

from __future__ import annotations

HALF = ("float16", "bfloat16")
HALF_POLICIES = ("float16", "bfloat16", "mixed_float16", "mixed_bfloat16", "half")
