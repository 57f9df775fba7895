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
    (probe,), done = examined_all(folder, text, keras, *options)
    return probe, done


def examined_all(folder: Path, text: str, keras: str, *options: str) -> Any:
    path = folder / "train.py"
    path.write_text(START + textwrap.dedent(text), encoding="utf-8")
    done = check(path.name, "--steps", "20", "--budget", "300", *options, directory=folder, keras=keras)
    return done.report["probes"], done


LOOP = """
model(x[:16])
optimizer = wrapped(K.optimizers.Adam(1e-3))

{decorator}
def step({given}):
    {taken}
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.cast(model(xb, training=True), tf.float32) - yb) ** 2)
        loss_scaled = scaled(optimizer, loss)
    update(optimizer, tape, loss_scaled, model.trainable_variables)

data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat()
for xb, yb in data.take(60):
    {call}
"""
NOT_TRIED = {
    "iterator": (
        SICK + LOOP.format(decorator="@tf.function", given="it", taken="xb, yb = next(it)", call="step(iter(data))"),
        "an iterator",
    ),
    "data set": (
        SICK
        + "held = None\n"
        + LOOP.replace(
            "model(x[:16])", "held = iter(tf.data.Dataset.from_tensors((x[:16], y[:16])).repeat())\nmodel(x[:16])"
        ).format(decorator="@tf.function", given="", taken="xb, yb = next(held)", call="step()"),
        "a data set of its own",
    ),
}


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in BOTH])
@pytest.mark.parametrize("name", NOT_TRIED)
def test_why_there_is_none(name: str, keras: str, tmp_path: Path) -> None:
    text, reason = NOT_TRIED[name]
    probe, done = examined(tmp_path, text, keras)
    assert reason in probe["second_training"]["not_tried"]
    assert "Not trained again" in " ".join(finding["help"] for finding in done.report["findings"])


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in BOTH])
def test_it_leaves_no_trace(keras: str, tmp_path: Path) -> None:
    """The script goes on to a second fit(), which begins where the first one ended."""
    text = SICK + FIT + FIT.replace("model.compile", "# model.compile") + FIT
    with_it, _ = examined_all(tmp_path, text, keras, "--all-fits")
    without, _ = examined_all(tmp_path, text, keras, "--all-fits", "--no-second-training")
    assert [probe["second_training"] is None for probe in without] == [True] * len(without)
    for step, step_without in zip(with_it, without, strict=True):
        assert [step[key] for key in ("loss_scale", "skipped_steps", "loss")] == [
            step_without[key] for key in ("loss_scale", "skipped_steps", "loss")
        ]


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param("tf_keras", marks=needs_keras("tf_keras"))])
def test_a_smaller_fixed_scale_is_tried(keras: str, tmp_path: Path) -> None:
    fixed = "K.mixed_precision.LossScaleOptimizer(K.optimizers.SGD(1e-3), dynamic=False, initial_scale=2.0**30)"
    _, done = examined(tmp_path, f"model = dense_model()\nmodel.compile({fixed}, 'mse')\n" + FIT.splitlines()[2], keras)
    (finding,) = [finding for finding in done.report["findings"] if finding["code"] == "MP911"]
    (remedy,) = finding["remedies"]
    assert (remedy["kind"], remedy["tried"]) == ("smaller-scale", "healed")
    assert f"with {remedy['scale']:g}, " in finding["help"]
    assert 1 <= remedy["scale"] < 2.0**30


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param("tf_keras", marks=needs_keras("tf_keras"))])
def test_a_variable_that_its_first_step_makes_of_a_number(keras: str, tmp_path: Path) -> None:
    """Nadam of tf_keras begins with a 1 of its own, made while the step is traced."""
    probe, _ = examined(tmp_path, SICK + FIT.replace("Adam", "Nadam"), keras)
    assert "not_tried" not in probe["second_training"]


@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in BOTH])
def test_before_and_after_are_told(keras: str, tmp_path: Path) -> None:
    probe, _ = examined(tmp_path, SICK + FIT, keras, "--steps", "50")
    assert probe["verdict"] in ("stuck", "collapsing")
    second = probe["second_training"]
    assert second["layers"] == ["energy"]
    assert (second["verdict"], second["steps"]) == ("healthy", 50)
    assert max(second["skipped_steps"]) < 33 < len(second["loss_scale"])
    assert second["loss_scale"][0] == probe["loss_scale"][0]
    assert second["failing_batch_finite"] is True
    assert sum(second["loss"][42:48]) < sum(second["loss"][:6]), "six batches are an epoch: the same data"
