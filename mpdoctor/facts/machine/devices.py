"""A device that TensorFlow computes on, and what 16-bit numbers gain on it."""

from __future__ import annotations

import re
from typing import Sequence

from mpdoctor.facts.frozen import dataclass

# Compute capability 7.5, and no tensor cores: the chips TU116 and TU117.
_TURING_WITHOUT_TENSOR_CORES = r"GTX 16\d\d|\bMX[45]50\b|\bT(400|500|550|600|1000|1200|2000)\b"
_FAST_FLOAT16_ARITHMETIC = ((5, 3), (6, 0), (6, 2))  # twice the rate of float32, without tensor cores
_CPU_BFLOAT16 = ("amx_bf16", "avx512_bf16", "bf16")  # as the kernel names them; the last one is Arm's
_ONEDNN_MULTIPLIES_BFLOAT16 = (2, 15)  # measured there and later; 2.10 gained nothing
_CPU_MULTIPLIES_FLOAT16 = (2, 16)  # before, a matrix product in float16 took a few hundred times as long

TF32 = "in TF32, with the 10 bits of mantissa that float16 has (NVIDIA_TF32_OVERRIDE=0 turns that off)"


@dataclass(frozen=True)
class Outlook:
    """What a 16-bit dtype brings on a device. speed: "faster", "no faster", "slower" or "unknown", against float32."""

    speed: str
    why: str


@dataclass(frozen=True)
class DeviceFacts:
    """A device that TensorFlow computes on.

    kind
        As TensorFlow names it: "CPU", "GPU", "TPU".
    name
        "NVIDIA GeForce GTX 1080"; "" where it is not known.
    compute_capability
        Of an NVIDIA GPU; None for everything else.
    instructions
        Of a CPU, as its operating system names them: those that compute with 16-bit numbers.
    uses_tf32
        Of an NVIDIA GPU: float32 matrices are multiplied in TF32, with the 10 bits of mantissa that float16 has.
    """

    kind: str
    name: str = ""
    compute_capability: tuple[int, int] | None = None
    instructions: tuple[str, ...] = ()
    uses_tf32: bool = False

    @property
    def float32_products(self) -> str:
        """How float32 matrices are multiplied, where that is not in float32; else ""."""
        return f"multiplied {TF32}" if self.uses_tf32 else ""

    @property
    def has_tensor_cores(self) -> bool:
        capability = self.compute_capability
        if capability is None or capability < (7, 0):
            return False
        return not re.search(_TURING_WITHOUT_TENSOR_CORES, self.name)

    def outlook(self, dtype: str, tensorflow_release: Sequence[int] = ()) -> Outlook:
        """`dtype`: "float16" or "bfloat16". `tensorflow_release`: () where it is not known."""
        if self.kind == "CPU":
            return self._on_cpu(dtype, tuple(tensorflow_release))
        if self.kind == "TPU":
            if dtype == "bfloat16":
                return Outlook("faster", "a TPU multiplies in bfloat16")
            return Outlook("no faster", "a TPU multiplies in bfloat16, not in float16")
        if self.compute_capability is None:
            return Outlook("unknown", "its compute capability is not known")
        return self._on_gpu(dtype, self.compute_capability)

    def _on_gpu(self, dtype: str, capability: tuple[int, int]) -> Outlook:
        if dtype == "bfloat16" and capability < (8, 0):
            return Outlook("slower", "bfloat16 needs compute capability 8.0 and is converted to float32 here")
        if self.has_tensor_cores:
            return Outlook("faster", "it has tensor cores")
        if capability >= (7, 0) or capability in _FAST_FLOAT16_ARITHMETIC:
            return Outlook("no faster", "it computes in float16, but has no tensor cores; it saves memory only")
        return Outlook("slower", "it has no tensor cores, which come with compute capability 7.0, nor float16 units")

    def _on_cpu(self, dtype: str, tensorflow: tuple[int, ...]) -> Outlook:
        if dtype == "float16":
            if tensorflow and tensorflow < _CPU_MULTIPLIES_FLOAT16:
                return Outlook("slower", "a matrix product in float16 takes a few hundred times as long up to TF 2.15")
            return Outlook("slower", "a CPU converts each number to float32 and back; it shows errors, not speed")
        unit = next((name.upper() for name in _CPU_BFLOAT16 if name in self.instructions), "")
        if not unit:
            return Outlook("no faster", "a CPU without bfloat16 units converts each number to float32 and back")
        if tensorflow >= _ONEDNN_MULTIPLIES_BFLOAT16:
            return Outlook("faster", f"matrix products and convolutions only, by {unit}")
        return Outlook("no faster", f"each number is converted to float32 and back; TF 2.15 and later use {unit}")
