"""What options of `mpdoctor check` choose among."""

from __future__ import annotations

from enum import Enum


class Policy(str, Enum):
    auto = "auto"
    mixed_float16 = "mixed_float16"
    mixed_bfloat16 = "mixed_bfloat16"
    float32 = "float32"


class Device(str, Enum):
    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"
