"""Wrong loops of the battery, mended: their first step moves the weights as plain Keras' float32 loop does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checking import PATIENCE, ROOT, needs_keras
from test_mended_programs import mend

BATTERY = ROOT / "fixtures" / "battery" / "sick"
LOOPS = [
    ("eager_loop_unscaled", "3"),
    ("train_step_unscaled", "3"),
    ("train_step_unscaled", "tf_keras"),
    ("gan_one_of_two_unscaled", "3"),
    ("whole_epoch_unscaled", "3"),
    ("divided_by_hand", "3"),
    ("never_unscaled_sgd", "tf_keras"),
    ("never_unscaled_jit", "tf_keras"),
    ("wrapped_twice", "3"),
    ("clipped_while_scaled", "3"),
    ("clipped_while_scaled", "tf_keras"),
    ("unscaled_at_every_micro_batch", "tf_keras"),
]


def cases() -> list[Any]:
    return [pytest.param(*loop, id="-".join(loop), marks=needs_keras(loop[1])) for loop in LOOPS]


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "keras"), cases())
def test_a_mended_loop_moves_weights_as_float32_does(name: str, keras: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_bytes((BATTERY / f"{name}.py").read_bytes())
    right = first_updates(script, keras, "float32")
    done = mend("train.py", "--output-format", "json", "--budget", "200", "--write", directory=tmp_path, keras=keras)
    assert (done.exit_code, done.report["mended"]) == (0, True), done
    for now, then in zip(first_updates(script, keras), right, strict=True):
        cosine = now @ then / np.linalg.norm(now) / np.linalg.norm(then)
        exponent = np.log2(np.linalg.norm(now) / np.linalg.norm(then))
        assert cosine > 0.999
        assert abs(exponent) < 0.01  # of 10 where the loss scale does not cancel out


def first_updates(script: Path, keras: str, *arguments: str) -> list[Any]:
    """Of each optimizer, all that its first step added to its weights."""
    result = script.with_name(f"updates{len(arguments)}.npz")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "01"[keras == "tf_keras"]}
    program = ROOT / "tests" / "support" / "first_updates.py"
    command = [sys.executable, str(program), script, keras, result, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(result) as found:
        numbers = sorted({name.partition("-")[0] for name in found})
        return [
            np.concatenate([found[n].ravel() for n in found if n.partition("-")[0] == number]) for number in numbers
        ]
