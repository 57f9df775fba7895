"""`check --from-run`: a script is trained on the batch that failed in a recorded training of it, far behind the steps
that a check sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checking import check, needs_keras

from mpdoctor.project.regular_files import bytes_from_file
from mpdoctor.recorded.run_reader import series_from_files

ROOT = Path(__file__).parents[2]
SCRIPT = """
import numpy as np
import tensorflow as tf
from mpdoctor.training import LossScaleMonitor

tf.keras.utils.set_random_seed(1)
tf.keras.mixed_precision.set_global_policy("mixed_float16")
given = np.ones([1200, 4], "float32")
given[900:] *= 3e4
added = tf.keras.layers.Dense(UNITS, kernel_initializer="ones", name="added")
scaled = tf.keras.layers.Lambda(lambda x: x * 1e-4, name="scaled")
outputs = tf.keras.layers.Dense(1, dtype="float32", name="outputs")
MODEL
model.compile(tf.keras.optimizers.SGD(1e-6), "mse")
monitor = LossScaleMonitor(KEPT)
TRAIN
"""
FUNCTIONAL = """
inputs = tf.keras.Input([4])
model = tf.keras.Model(inputs, outputs(scaled(added(inputs))))
"""
SUBCLASSED = """
class Held(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.parts = tf.keras.Sequential([added, scaled])

    def call(self, given):
        return self.parts(given)

class Whole(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.held, self.last = Held(), outputs

    def call(self, given):
        return self.last(self.held(given))

model = Whole()
"""
FIT = "model.fit(given, np.zeros([1200, 1]), batch_size=4, shuffle=False, verbose=0, callbacks=[monitor])"
LOOP = """
@tf.function
def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(batch, training=True) ** 2)
        scaled_loss = model.optimizer.scale_loss(loss)
    model.optimizer.apply(tape.gradient(scaled_loss, model.trainable_variables), model.trainable_variables)
for batch in tf.data.Dataset.from_tensor_slices(given).batch(4):
    step(batch)
"""
needs = [pytest.param(keras, marks=[needs_keras(keras), pytest.mark.slow]) for keras in ("3", "tf_keras")]


def script(
    folder: Path, kept: str = "keep_batch=True", train: str = FIT, units: int = 8, model: str = FUNCTIONAL
) -> None:
    text = SCRIPT.replace("KEPT", kept).replace("TRAIN", train).replace("UNITS", str(units)).replace("MODEL", model)
    (folder / "train.py").write_text(text, encoding="utf-8")


def trained(folder: Path, keras: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"}
    subprocess.run([sys.executable, "train.py"], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize("keras", needs)
def test_the_layer_of_the_batch_that_failed_is_named(tmp_path: Path, keras: str) -> None:
    script(tmp_path)
    trained(tmp_path, keras)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"run.mpdoctor", "run.batch.npz"} <= before.keys()
    alone = check("train.py", directory=tmp_path, keras=keras)
    assert alone.report["probes"][0]["verdict"] == "healthy"
    again = check("train.py", "--from-run", "run.mpdoctor", directory=tmp_path, keras=keras)
    (probe,) = again.report["probes"]
    assert probe["data"] == "recorded" and probe["verdict"] in ("collapsing", "stuck")
    assert len(probe["skipped_steps"]) == probe["steps"]
    assert "MP904" in again.codes() and again.finding("MP904")["layer"] == "added"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("keras", needs)
def test_a_model_that_has_no_weights_before_its_first_call_gets_those_of_the_run(tmp_path: Path, keras: str) -> None:
    script(tmp_path, model=SUBCLASSED)
    trained(tmp_path, keras)
    again = check("train.py", "--from-run", "run.mpdoctor", directory=tmp_path, keras=keras)
    assert again.report["probes"][0]["data"] == "recorded"
    assert again.finding("MP904")["layer"].endswith("added")


@needs_keras("3")
@pytest.mark.slow
def test_a_fault_three_quarters_through_a_long_training_is_shown(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """In step 1,500 of 2,000; with --whole-tables in step 15,000 of 20,000."""
    steps = 20_000 if pytestconfig.option.whole_tables else 2000
    fault = steps * 3 // 4
    script(tmp_path, "keep_batch=True, measure_every=100")
    path = tmp_path / "train.py"
    text = path.read_text(encoding="utf-8").replace("1200", str(steps * 4)).replace("[900:]", f"[{(fault - 1) * 4}:]")
    path.write_text(text, encoding="utf-8")
    trained(tmp_path, "3")
    (series,) = series_from_files(tmp_path / "run.mpdoctor", bytes_from_file)
    (told,) = [event for event in series.events if event.kind == "collapsing"]
    assert (series.steps, told.since, told.layer) == (steps, fault, "added")
    assert series.rows[-1].last == steps and series.rows[-1].skipped == series.rows[-1].steps
    (layer,) = [part for part in series.measured if part.name == "added"]
    assert fault <= layer.not_finite_step < fault + 2 * steps // 100 + 100 and layer.first == 4
    again = check("train.py", "--from-run", "run.mpdoctor", directory=tmp_path, keras="3")
    assert again.finding("MP904")["layer"] == "added"


@needs_keras("3")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"units": 4}, 1, "recorded weights are not those of this model"),
        ({"train": LOOP}, 2, "A loop takes its batches itself"),
    ],
)
def test_what_it_cannot_be_trained_in_is_said(
    tmp_path: Path, changed: dict[str, object], status: int, says: str
) -> None:
    script(tmp_path)
    trained(tmp_path, "3")
    script(tmp_path, **changed)  # type: ignore[arg-type]
    done = check("train.py", "--from-run", "run.mpdoctor", directory=tmp_path, keras="3")
    assert done.exit_code == status and says in done.finding("MP002")["message"]
