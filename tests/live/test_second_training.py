"""The second training: the same steps once more with the tried layers in float32, against the edited script."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from checking import check, needs_keras
from live import START

BOTH = ("3", "tf_keras")
SICK = """
class Energy(L.Layer):
    def call(self, x):
        return tf.sqrt(tf.reduce_sum(tf.square(300.0 * x), -1, keepdims=True) + 1.0)

model = K.Sequential([L.Input((8,)), L.Dense(16), Energy(name="energy"), L.Dense(1, dtype="float32")])
"""
FIT = """
model.compile(wrapped(K.optimizers.Adam(1e-3)), "mse")
model.fit(x, y, batch_size=16, epochs=9, verbose=0)
"""


def examined(folder: Path, text: str, keras: str, *options: str) -> Any:
    path = folder / "train.py"
    path.write_text(START + textwrap.dedent(text), encoding="utf-8")
    done = check(path.name, "--steps", "20", "--budget", "300", *options, directory=folder, keras=keras)
    (probe,) = done.report["probes"]
    return probe, done


@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in BOTH])
def test_before_and_after_are_told(keras: str, tmp_path: Path) -> None:
    probe, _ = examined(tmp_path, SICK + FIT, keras)
    assert probe["verdict"] in ("stuck", "collapsing")
    second = probe["second_training"]
    assert second["layers"] == ["energy"]
    assert (second["verdict"], second["steps"]) == ("healthy", 20)
    assert second["skipped_steps"] == [] and second["loss_scale"] == [32768.0] * 20
    assert second["failing_batch_finite"] is True
    assert second["loss"][-1] < second["loss"][0]
