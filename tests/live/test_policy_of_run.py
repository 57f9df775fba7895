"""Scripts that take their policy from the command line or the environment: once a run has shown which one it is, the
source is judged under it."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import check

pytestmark = pytest.mark.slow

SCRIPT = """\
import argparse
import os
import sys

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
policy = {policy}
tf.keras.mixed_precision.set_global_policy(policy)


class Direction(tf.keras.layers.Layer):
    def call(self, inputs):
        return inputs / (tf.norm(inputs, axis=-1, keepdims=True) + 1e-9)


layers = [tf.keras.layers.Dense(8, activation="relu"), Direction(), tf.keras.layers.Dense(1, dtype="float32")]
model = tf.keras.Sequential([tf.keras.Input((8,)), *layers])
model.compile("adam", "mse")
x = np.random.default_rng(0).random((256, 8), "float32")
x[::9] = -0.0
model.fit(x, np.ones((256, 1)), batch_size=32, verbose=0)
"""
# (how the script comes to its policy, its arguments, its environment)
WAYS = {
    "default": ('parser.add_argument("--p", default="float32") and parser.parse_args().p',
                ["--p", "mixed_float16"], {}),
    "required": ('parser.add_argument("--p", required=True) and parser.parse_args().p',
                 ["--p=mixed_float16"], {}),
    "argv": ("sys.argv[-1]", ["mixed_float16"], {}),
    "environment": ('os.environ.get("POLICY", "float32")', [], {"POLICY": "mixed_float16"}),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS)
def test_the_source_is_judged_under_it(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, arguments, environment = WAYS[way]
    text = SCRIPT.format(policy=policy)
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    finding = check("train.py", "--", *arguments, directory=tmp_path).finding("MP502")
    assert (finding["what_if"], finding["fix"]) == (False, None)
    assert finding["line"] == 1 + text[: text.index("1e-9")].count("\n")


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_under_another_one_it_is_not(tmp_path: Path, policy: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(policy="sys.argv[-1]"), encoding="utf-8")
    assert "MP502" not in check("train.py", "--", policy, directory=tmp_path).codes()
