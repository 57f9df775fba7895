"""What a machine and its TensorFlow can do: devices, versions, variables, `mpdoctor env`."""

from __future__ import annotations

import pytest

from mpdoctor.facts.devices import DeviceFacts

CPU_WITH_BFLOAT16 = DeviceFacts("CPU", "AMD EPYC", None, ("avx512_bf16",))


@pytest.mark.parametrize(
    ("device", "float16", "bfloat16"),
    [
        (DeviceFacts("GPU", "NVIDIA H200", (9, 0)), "faster", "faster"),
        (DeviceFacts("GPU", "NVIDIA A100-SXM4-40GB", (8, 0)), "faster", "faster"),
        (DeviceFacts("GPU", "NVIDIA GeForce RTX 5090", (12, 0)), "faster", "faster"),
        (DeviceFacts("GPU", "Tesla T4", (7, 5)), "faster", "slower"),
        (DeviceFacts("GPU", "Tesla V100-SXM2-16GB", (7, 0)), "faster", "slower"),
        (DeviceFacts("GPU", "NVIDIA GeForce RTX 2060", (7, 5)), "faster", "slower"),
        (DeviceFacts("GPU", "NVIDIA GeForce GTX 1650 Ti", (7, 5)), "no faster", "slower"),
        (DeviceFacts("GPU", "Quadro T1000", (7, 5)), "no faster", "slower"),
        (DeviceFacts("GPU", "Tesla P100-PCIE-16GB", (6, 0)), "no faster", "slower"),
        (DeviceFacts("GPU", "NVIDIA GeForce GTX 1080", (6, 1)), "slower", "slower"),
        (DeviceFacts("GPU", "GeForce GTX 980", (5, 2)), "slower", "slower"),
        (DeviceFacts("GPU", "METAL"), "unknown", "unknown"),
        (DeviceFacts("TPU"), "no faster", "faster"),
        (DeviceFacts("CPU", "Intel Core i7"), "slower", "no faster"),
        (CPU_WITH_BFLOAT16, "slower", "faster"),
    ],
    ids=lambda value: getattr(value, "name", value) or value.kind,
)
def test_what_16_bits_bring_on_a_device(device: DeviceFacts, float16: str, bfloat16: str) -> None:
    assert device.outlook("float16", (2, 21, 0)).speed == float16
    assert device.outlook("bfloat16", (2, 21, 0)).speed == bfloat16


def test_an_older_tensorflow_makes_less_of_a_cpu() -> None:
    assert CPU_WITH_BFLOAT16.outlook("bfloat16", (2, 10, 1)).speed == "no faster"
    assert "few hundred times" in CPU_WITH_BFLOAT16.outlook("float16", (2, 15, 1)).why
    assert "few hundred times" not in CPU_WITH_BFLOAT16.outlook("float16", (2, 16, 2)).why
