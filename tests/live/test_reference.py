"""Steps against their float32 twins: `check --reference` on small models of either Keras."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from checking import check, needs_keras
from environments import ENVIRONMENTS
from live import START

BOTH = ("3", "tf_keras")
NET = """
images = np.random.RandomState(0).rand(64, 10, 10, 3).astype("float32")
labels = np.random.RandomState(1).randint(0, 3, 64)
model = K.Sequential([
    L.Input((10, 10, 3)), L.Conv2D(6, 3, activation="relu", name="first"), L.BatchNormalization(name="norm"),
    L.Dropout(0.3), L.Conv2D(6, 3, name="second"), L.GlobalAveragePooling2D(), L.Dense(3, dtype="float32", name="head"),
])
entropy = K.losses.SparseCategoricalCrossentropy(from_logits=True)
"""
FIT = """
model.compile(wrapped(K.optimizers.SGD(1e-2)), lambda y, p: {weight} * entropy(y, p))
model.fit(images, labels, batch_size=16, epochs=9, verbose=0)
"""


def examined(folder: Path, text: str, keras: str, *options: str) -> Any:
    path = folder / "train.py"
    path.write_text(START + textwrap.dedent(text), encoding="utf-8")
    done = check(path.name, "--steps", "12", "--budget", "300", *options, directory=folder, keras=keras)
    (probe,) = done.report["probes"]
    return probe, done.report["findings"]


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param("3", marks=needs_keras("3"))])
def test_a_healthy_training_loses_little(keras: str, tmp_path: Path) -> None:
    probe, findings = examined(tmp_path, NET + FIT.format(weight=1), keras, "--reference")
    reference = probe["reference"]
    assert not findings
    assert [step["moment"] for step in reference["steps"]] == ["first", "settled", "late"]
    assert 0.99 < reference["fidelity"] < 1
    assert all(variable["flushed"] == 0 for step in reference["steps"] for variable in step["variables"])
    room = reference["room"]
    assert room["lowest"] <= 1 < room["middle"] < room["highest"] < room["overflows_above"]


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param("tf_keras", marks=needs_keras("tf_keras"))])
def test_it_leaves_no_trace(keras: str, tmp_path: Path) -> None:
    """The script goes on to a second fit(), which begins where the first one ended."""
    text = NET + FIT.format(weight=1) + FIT.format(weight=1).splitlines()[2]
    told = []
    for options in (("--reference",), ()):
        path = tmp_path / "train.py"
        path.write_text(START + textwrap.dedent(text), encoding="utf-8")
        done = check(path.name, "--steps", "8", "--all-fits", *options, directory=tmp_path, keras=keras)
        told.append([(probe["loss_scale"], probe["loss"]) for probe in done.report["probes"]])
        assert [probe["reference"] is None for probe in done.report["probes"]] == [not options] * 2
    assert told[0] == told[1]


WITH_SEEDS = NET.replace("L.Dropout(0.3)", "L.Dropout(0.3, seed=11), L.GaussianNoise(0.05, seed=3)")


@pytest.mark.environments
@pytest.mark.parametrize("keras", ["2.10"])
def test_layers_that_count_their_seeds_up_draw_the_same(keras: str, tmp_path: Path) -> None:
    (environment,) = (known for known in ENVIRONMENTS if known.keras == keras)
    if environment.missing:
        pytest.skip(environment.missing)
    (tmp_path / "train.py").write_text(START + WITH_SEEDS + FIT.format(weight=1), encoding="utf-8")
    done = environment.check("train.py", "--steps", "12", "--reference", "--budget", "300", directory=tmp_path)
    reference = done.report["probes"][0]["reference"]
    assert not reference["not_measured"] and 0.99 < reference["fidelity"] < 1
    assert not reference["divergence"]["not_measured"]


CALLED_ON_A_CONSTANT = """
given = K.Input((8,))
place = L.Dense(16, name="place")(tf.range(8.0)[None])
hidden = L.Dense(16)(given) + place
joined = {joined}
model = K.Model(given, L.Dense(1, dtype="float32")(joined))
squared = K.losses.MeanSquaredError()
model.compile(wrapped(K.optimizers.SGD(1e-3)), lambda y, p: 1e-3 * squared(y, p))
model.fit(x, y, batch_size=16, epochs=9, verbose=0)
"""


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in BOTH])
@pytest.mark.parametrize("joined", ["hidden", "(K.ops if KERAS3 else tf).concat{0}([hidden, hidden * place], -1)"])
def test_what_a_layer_put_out_once_is_a_constant_of_the_model(joined: str, keras: str, tmp_path: Path) -> None:
    """16-bit, whatever the layers compute in later."""
    joined = joined.format("enate" if keras == "3" else "")
    probe, _ = examined(tmp_path, CALLED_ON_A_CONSTANT.format(joined=joined), keras, "--reference")
    reference = probe["reference"]
    assert not reference["not_measured"] and 0.99 < reference["fidelity"] < 1
    assert not reference["divergence"]["not_measured"]


NOT_COMPARED = {
    "hard cast": (
        """
        class Halved(L.Layer):
            def call(self, x):
                return tf.cast(x, tf.float16)

        model = K.Sequential([L.Input((8,)), L.Dense(16), Halved(name="halved"), L.Dense(1, dtype="float32")])
        model.compile(wrapped(K.optimizers.SGD(1e-3)), "mse")
        model.fit(x, y, batch_size=16, epochs=9, verbose=0)
        """,
        "`halved` puts out float16",
    ),
    "noise of its own": (
        """
        class Noisy(L.Layer):
            def call(self, x):
                return x * float(1 + np.random.rand())  # a constant of the graph; another one in each eager step

        model = K.Sequential([L.Input((8,)), L.Dense(16), Noisy(), L.Dense(1, dtype="float32")])
        model.compile(wrapped(K.optimizers.SGD(1e-3)), "mse")
        model.fit(x, y, batch_size=16, epochs=9, verbose=0)
        """,
        "random numbers cannot be repeated",
    ),
    "eager loop": (
        """
        model = dense_model()
        model(x[:16])
        optimizer = wrapped(K.optimizers.SGD(1e-3))
        for _ in range(30):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.cast(model(x[:16], training=True), tf.float32) - y[:16]) ** 2)
                loss_scaled = scaled(optimizer, loss)
            update(optimizer, tape, loss_scaled, model.trainable_variables)
        """,
        "an eager loop",
    ),
    "replicas": (
        """
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
            model = K.Sequential([L.Input((8,)), L.Dense(16), L.Dense(1, dtype="float32")])
            model.compile(wrapped(K.optimizers.SGD(1e-3)), "mse")
        model.fit(x, y, batch_size=16, epochs=9, verbose=0)
        """,
        "several replicas",
    ),
}


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in BOTH])
@pytest.mark.parametrize("name", NOT_COMPARED)
def test_why_there_are_no_numbers(name: str, keras: str, tmp_path: Path) -> None:
    text, reason = NOT_COMPARED[name]
    probe, _ = examined(tmp_path, textwrap.dedent(text), keras, "--reference")
    assert reason in probe["reference"]["not_measured"]
    assert probe["reference"]["fidelity"] is None
