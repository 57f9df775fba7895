"""What a machine and its TensorFlow can do: devices, versions, variables, `mpdoctor env`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checking import ROOT, check, needs_tensorflow

from mpdoctor.facts.machine.devices import DeviceFacts
from mpdoctor.facts.machine.environment import EnvironmentFacts, keras_of_tensorflow, labels_from_environment

BOTH = {"keras": "3.15.1", "tf_keras": "2.21.0"}
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
    assert "2.15 and later use AVX512_BF16" in CPU_WITH_BFLOAT16.outlook("bfloat16", (2, 10, 1)).why
    assert CPU_WITH_BFLOAT16.outlook("bfloat16", (2, 10, 1)).speed == "no faster"
    assert "few hundred times" in CPU_WITH_BFLOAT16.outlook("float16", (2, 15, 1)).why
    assert "few hundred times" not in CPU_WITH_BFLOAT16.outlook("float16", (2, 16, 2)).why


@pytest.mark.parametrize(
    ("tensorflow", "packages", "variables", "package", "version", "because"),
    [
        ("2.4.4", {}, {}, "tf.keras", "2.4.4", "up to 2.14"),
        ("2.15.1", {"keras": "2.15.0"}, {"TF_USE_LEGACY_KERAS": "0"}, "tf.keras", "2.15.0", "=0 asks for no other"),
        ("2.21.0", BOTH, {}, "keras", "3.15.1", "TF_USE_LEGACY_KERAS=1 is not set"),
        ("2.21.0", BOTH, {"TF_USE_LEGACY_KERAS": "1"}, "tf_keras", "2.21.0", "=1"),
        ("2.21.0", BOTH, {"TF_USE_LEGACY_KERAS": "yes"}, "keras", "3.15.1", "=yes"),
        ("2.16.2", {"keras": "2.15.0"}, {}, "tf.keras", "2.15.0", "the keras that is installed"),
        ("2.15.1", {"keras": "3.0.5"}, {}, "keras", "3.0.5", "the keras that is installed"),
    ],
)
def test_which_keras_tf_keras_is_and_why(
    tensorflow: str, packages: dict[str, str], variables: dict[str, str], package: str, version: str, because: str
) -> None:
    keras = keras_of_tensorflow(tensorflow, packages, variables)
    assert keras is not None
    assert (keras.package, keras.version) == (package, version)
    assert because in keras.because


@pytest.mark.parametrize(
    ("tensorflow", "packages", "legacy"),
    [
        ("2.21.0", {"keras": "3.15.1"}, "1"),
        ("2.15.1", {"keras": "2.15.0"}, "1"),  # measured
        ("2.21.0", {}, ""),
        ("", {"keras": "3.15.1"}, ""),
    ],
)
def test_a_keras_that_is_missing_is_none(tensorflow: str, packages: dict[str, str], legacy: str) -> None:
    variables = {"TF_USE_LEGACY_KERAS": legacy} if legacy else {}
    assert keras_of_tensorflow(tensorflow, packages, variables) is None


def test_each_device_has_its_lines() -> None:
    a100 = DeviceFacts("GPU", "NVIDIA A100", (8, 0), uses_tf32=True)
    gpus = (a100, DeviceFacts("GPU", "Tesla T4", (7, 5)), DeviceFacts("CPU", "x"))
    labels = labels_from_environment(EnvironmentFacts(tensorflow="2.15.1", devices=gpus, cuda="12.2"))
    assert (labels["GPU 0"], labels["GPU 0 compute capability"]) == ("NVIDIA A100", "8.0")
    assert labels["GPU 1 bfloat16"].startswith("slower: bfloat16 needs compute capability 8.0")
    assert labels["GPU 0 float32"].startswith("multiplied in TF32")
    assert {"GPU", "GPU 1 float32"}.isdisjoint(labels)
    for cuda, words in (("12.2", "none that TensorFlow can use"), ("", "built without CUDA")):
        alone = labels_from_environment(EnvironmentFacts(tensorflow="2.15.1", devices=gpus[2:], cuda=cuda))
        assert words in alone["GPU"]


# --- mpdoctor env -----------------------------------------------------------------------------------------------
def env(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-m", "mpdoctor", "env", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=surroundings, check=False)


def test_an_interpreter_without_tensorflow_says_so_and_how_to_name_one(bare: Path) -> None:
    told = env("--python", str(bare), "--output-format", "json", KERAS_BACKEND="jax")
    labels = json.loads(told.stdout)
    assert told.returncode == 0
    assert labels["TensorFlow"].startswith(f"none: {bare} (Python ")
    assert "--python" in labels["TensorFlow"]
    assert (labels["Interpreter"], labels["KERAS_BACKEND"]) == (str(bare), "jax")
    assert "TF_FORCE_GPU_ALLOW_GROWTH" not in labels  # which mpdoctor itself has set


def test_a_tensorflow_that_cannot_be_imported_says_why(claiming: Path) -> None:
    told = env("--python", str(claiming))
    assert told.returncode == 0
    assert "none: ImportError: nobody is to import this" in told.stdout
    assert max(map(len, told.stdout.splitlines())) <= 80


def test_what_is_no_python_is_a_usage_error(tmp_path: Path) -> None:
    assert env("--python", str(tmp_path / "python")).returncode == 2
    assert "is not a Python" in env("--python", "/bin/true").stderr


@needs_tensorflow
@pytest.mark.slow
def test_the_environment_of_this_tensorflow(tmp_path: Path) -> None:
    import importlib.metadata as metadata

    labels = json.loads(env("--output-format", "json", TF_USE_LEGACY_KERAS="1").stdout)
    assert labels["TensorFlow"] == metadata.version("tensorflow")
    assert labels["tf.keras"] == f"tf_keras {metadata.version('tf_keras')}: TF_USE_LEGACY_KERAS=1 is set"
    assert labels["CPU float16"].startswith("slower")
    (tmp_path / "train.py").write_text("import tensorflow as tf\ntf.keras.Sequential([tf.keras.layers.Dense(1)])\n")
    report = check("train.py", directory=tmp_path, keras="tf_keras").report
    assert {**report["environment"], "Interpreter": ""} == {**labels, "Interpreter": ""}
