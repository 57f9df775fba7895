"""Under a forced policy the examination goes on behind what raises in 16 bits, beside a real TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import Check, check, needs_keras

pytestmark = pytest.mark.slow

START = """\
import numpy as np
import tensorflow as tf
import {package} as keras

tf.random.set_seed(3)
x = np.random.default_rng(3).normal(size=(96, 8)).astype("float32")
y = x[:, :1].copy()


class Scaled(keras.layers.Layer):
    def build(self, shape):
        self.gain = tf.Variable(tf.ones((shape[-1],)))

    def call(self, x):
        return x * {gain}


class Spread(keras.layers.Layer):
    def call(self, x):
        return x * {spread}


class Distance(keras.metrics.Metric):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(tf.reduce_mean(tf.abs(tf.cast(y_true, tf.float32) - {y_pred})))

    def result(self):
        return self.total


def squared(y_true, y_pred):
    return tf.reduce_mean(tf.square(tf.cast(y_true, tf.float32) - {y_pred}))

"""
WRONG = {"gain": "self.gain", "spread": "tf.linalg.svd(x[:, :, tf.newaxis], compute_uv=False)", "y_pred": "y_pred"}
RIGHT = {
    "gain": "tf.cast(self.gain, x.dtype)",
    "spread": "tf.cast(tf.linalg.svd(tf.cast(x, tf.float32)[:, :, tf.newaxis], compute_uv=False), x.dtype)",
    "y_pred": "tf.cast(y_pred, tf.float32)",
}
FUNCTIONAL = """
inputs = keras.Input((8,))
hidden = Scaled(name="scaled")(keras.layers.Dense(8, activation="relu")(inputs))
model = keras.Model(inputs, keras.layers.Dense(1)(hidden), name="net")
model.compile("adam", squared, metrics=[Distance(name="distance")])
model.fit(x, y, batch_size=16, epochs=2, verbose=0)
"""
KERNEL = """
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8), Spread(name="spread"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=16, epochs=2, verbose=0)
"""
NET = """
class Net(keras.Model):
    def __init__(self):
        super().__init__(name="net")
        self.first, self.last = keras.layers.Dense(8), keras.layers.Dense(1)
        self.gain = tf.Variable(tf.ones((8,)))

    def call(self, x):
        x = self.first(x)
        return self.last(x * {gain})

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = tf.reduce_mean(tf.square(y - {y_pred}))
            to_derive = {scaled}
        gradients = tape.gradient(to_derive, self.trainable_variables)
        {unscaled}
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {{"loss": loss}}


model = Net()
model.compile("adam")
model.fit(x, y, batch_size=16, epochs=2, verbose=0)
"""
LOOP = """
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8), Scaled(name="scaled"), keras.layers.Dense(1)])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(1e-3))
if hasattr(optimizer, "build"):
    optimizer.build(model.trainable_variables)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        y_pred = model(x, training=True)
        loss = tf.reduce_mean(tf.square(y - {y_pred}))
        to_derive = {scaled}
    gradients = tape.gradient(to_derive, model.trainable_variables)
    {unscaled}
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for _ in range(20):
    step(x[:16], y[:16])
"""
KERNEL_LOOP = LOOP.replace('Scaled(name="scaled")', 'Spread(name="spread")').replace(
    "y - {y_pred}", "y - tf.cast(y_pred, tf.float32)"
)
STEPS = {
    "keras": {"scaled": "{}.scale_loss(loss)", "unscaled": "pass"},
    "tf_keras": {
        "scaled": "{}.get_scaled_loss(loss)",
        "unscaled": "gradients = {}.get_unscaled_gradients(gradients)",
    },
}
RAW, METRIC, LOSS = ("MP203", "layer", "scaled"), ("MP508", "metric", "distance"), ("MP505", "loss", "squared")
OWN, OUTPUT = ("MP203", "operations", "net"), ("MP505", "output", "net")
PROGRAMS = [
    ("functional", "keras", FUNCTIONAL, [RAW, METRIC]),  # which gives every loss float32 predictions
    ("functional", "tf_keras", FUNCTIONAL, [RAW, LOSS, METRIC]),
    ("kernel", "keras", KERNEL, [("MP211", "layer", "spread")]),
    ("kernel", "tf_keras", KERNEL, [("MP211", "layer", "spread")]),
    ("subclassed", "keras", NET, [OWN, OUTPUT]),
    ("subclassed", "tf_keras", NET, [OWN, OUTPUT]),
    ("loop", "keras", LOOP, [RAW, ("MP505", "output", "sequential")]),
    ("loop", "tf_keras", LOOP, [RAW, ("MP505", "output", "sequential")]),
    ("kernel in a loop", "keras", KERNEL_LOOP, [("MP211", "layer", "spread")]),
    ("kernel in a loop", "tf_keras", KERNEL_LOOP, [("MP211", "layer", "spread")]),
]
CASES = [
    pytest.param(
        package, text, places, id=f"{name}-{package}", marks=needs_keras("3" if package == "keras" else package)
    )
    for name, package, text, places in PROGRAMS
]


def checked(path: Path, package: str, text: str, filling: dict[str, str], policy: str = "mixed_float16") -> Check:
    optimizer = "optimizer" if text in (LOOP, KERNEL_LOOP) else "self.optimizer"
    calls = {name: call.format(optimizer) for name, call in STEPS[package].items()}
    path.write_text((START + text).format(package=package, **filling, **calls), encoding="utf-8")
    return check(str(path), "--policy", policy, "--steps", "12", directory=path.parent, keras=None)


@pytest.mark.sampled(7, "mended in memory")
@pytest.mark.parametrize(("package", "text", "places"), CASES)
def test_all_that_is_in_the_way_is_told(
    package: str, text: str, places: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    done = checked(tmp_path / "train.py", package, text, WRONG)
    (probe,) = done.report["probes"]
    assert [(part["what"], part["name"]) for part in probe["mended"]] == [place[1:] for place in places], done
    assert probe["verdict"] in ("healthy", "settling"), done  # the weights are not seeded
    assert probe["steps"] == 12
    went_on = {finding["code"] for finding in done.report["findings"] if "mpdoctor continued" in finding["help"]}
    assert went_on == {code for code, _, _ in places}, done
    assert probe["went_on"].startswith("mpdoctor continued with ")


@pytest.mark.sampled(7, "mended in memory")
@pytest.mark.parametrize(("package", "text", "places"), CASES)
def test_nothing_is_mended_where_nothing_raises(
    package: str, text: str, places: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    done = checked(tmp_path / "train.py", package, text, RIGHT)
    (probe,) = done.report["probes"]
    assert (probe["mended"], probe["went_on"], probe["verdict"]) == ([], None, "healthy"), done


@pytest.mark.parametrize(
    "package", [pytest.param(name, marks=needs_keras("3" if name == "keras" else name)) for name in STEPS]
)
def test_a_policy_of_the_programs_own_is_left_alone(package: str, tmp_path: Path) -> None:
    text = '\nkeras.mixed_precision.set_global_policy("mixed_float16")' + KERNEL
    done = checked(tmp_path / "train.py", package, text, WRONG)
    (probe,) = done.report["probes"]
    assert (probe["mended"], probe["verdict"]) == ([], "failed"), done


@needs_keras("3")
def test_what_raises_in_float32_too_is_told_as_it_was_raised(tmp_path: Path) -> None:
    text = KERNEL.replace("Spread(name", "keras.layers.Reshape((3,), name")
    done = checked(tmp_path / "train.py", "keras", text, WRONG)
    assert "mpdoctor continued" not in str(done.report)
    assert done.report["summary"]["exit_code"] == 1


@needs_keras("3")
def test_what_if_findings_say_it_and_fail_no_run(tmp_path: Path) -> None:
    done = checked(tmp_path / "train.py", "keras", FUNCTIONAL, WRONG, policy="auto")
    told = {finding["code"] for finding in done.report["findings"] if finding["what_if"]}
    assert {"MP203", "MP508"} <= told, done
    assert done.report["summary"]["exit_code"] == 0
