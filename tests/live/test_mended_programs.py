"""`mpdoctor mend`: sick scripts mended in one go, each edit needed, and what is written checked once more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from checking import ROOT, check, needs_keras
from own_schemas import assert_fits
from written_edits import edit_from_json

from mpdoctor.fixes.texts import edited

PATIENCE = 900


@dataclass(frozen=True)
class Mend:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    def titles(self) -> list[str]:
        return list(dict.fromkeys(edit["title"] for edit in self.report["edits"]))


def mend(*arguments: str, directory: Path, keras: str = "3") -> Mend:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    environment.pop("TF_USE_LEGACY_KERAS", None)
    if keras == "tf_keras":
        environment["TF_USE_LEGACY_KERAS"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "mpdoctor", "mend", *arguments],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Mend(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Sick:
    """A script of the fixtures, and the edits that it needs, by their titles. `arguments`: of mend and check."""

    path: str
    titles: tuple[str, ...]
    keras: str = "3"
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{Path(self.path).stem}-{self.keras}"


SUM, PAINTED = "Cast to float32 before the reduction", "Cast `painted` to float32"
SCALED, IN_FLOAT32 = "Wrap the optimizer and scale the loss", "Compute the loss in float32"
SICK = [
    Sick("projects/loop_unscaled.py", ("Scale the loss",)),
    Sick("projects/loop_without_unscale.py", ("Unscale the gradients",), "tf_keras"),
    Sick("battery/sick/divided_by_hand.py", ("Delete the division",)),
    Sick("battery/sick/gan_one_of_two_unscaled.py", ("Scale the loss",)),
    Sick("battery/sick/clipped_while_scaled.py", ("Let the optimizer inside clip",)),
    Sick("battery/sick/clipped_while_scaled.py", ("Let the optimizer inside clip",), "tf_keras"),
    Sick("battery/sick/unscaled_at_every_micro_batch.py", ("Unscale once",), "tf_keras"),
    Sick("battery/sick/gram_matrix.py", ("`gram` computes in float32",)),
    Sick("battery/sick/adam_in_half.py", ('Write "mixed_float16"', 'Give the layer dtype="float32"')),
    Sick("battery/sick/dice_over_pixels.py", ("Cast to float32",)),
    Sick("battery/sick/loss_squared_in_half.py", ("Cast to float32",)),
    Sick("battery/sick/nan_on_the_second_replica.py", ("Scale with mpdoctor.training",)),
    Sick("mended/several_training_loops.py", (SCALED, SUM, PAINTED)),
    Sick(
        "mended/several_training_loops.py",
        (SCALED, IN_FLOAT32, SUM, PAINTED),
        "tf_keras",
    ),
    Sick("mended/several_step_functions.py", (SCALED, "Cast `guess` to float32")),
    Sick("mended/several_step_functions.py", (SCALED, "Cast `guess` to float32"), "tf_keras"),
    Sick("mended/own_norm_overflows.py", ("`norm_in` computes in float32",)),
    Sick("mended/own_norm_overflows.py", ("`norm_in` computes in float32",), "tf_keras"),
    Sick("mended/two_layers_on_a_line.py", ("`dense_1` computes in float32",), arguments=("--ignore", "MP504")),
    Sick("mended/hub_of_a_graph.py", ("`conv/sequential/dense_1` computes in float32", "`conv` computes in float32")),
    Sick("mended/wrapped_in_two_functions.py", ("Wrap once",)),
    Sick("mended/wrapped_in_two_functions.py", ("Wrap once",), "tf_keras"),
    Sick(
        "mended/attention_in_a_function.py",
        ("Cast to `q.dtype`", "Cast to `logits.dtype`", 'Give the layer dtype="float32"'),
    ),
]


def sick_scripts() -> list[Any]:
    return [pytest.param(script, id=str(script), marks=needs_keras(script.keras)) for script in SICK]


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("sick", sick_scripts())
def test_a_sick_script_is_mended_by_what_it_needs(sick: Sick, tmp_path: Path) -> None:
    source = (ROOT / "fixtures" / sick.path).read_bytes()
    script = tmp_path / "train.py"
    script.write_bytes(source)
    looking = ("train.py", "--budget", "200", *sick.arguments)
    done = mend(*looking, "--output-format", "json", "--write", directory=tmp_path, keras=sick.keras)
    report = done.report
    assert (done.exit_code, report["mended"]) == (0, True), done
    assert_fits(report, "mended-1.json")
    assert tuple(done.titles()) == sick.titles
    text = script.read_text()
    assert_patch_makes(report["patch"], source, text, tmp_path)
    assert check(*looking, directory=tmp_path, keras=sick.keras).exit_code == 0
    groups: dict[str, list[dict[str, Any]]] = {}
    for edit in report["edits"]:
        groups.setdefault(edit["title"], []).append(edit)
    assert edited(source.decode(), map(edit_from_json, report["edits"])) == text
    for left_out in groups if len(groups) > 1 else ():
        others = [edit_from_json(edit) for title, edits in groups.items() if title != left_out for edit in edits]
        script.write_text(edited(source.decode(), others))
        assert check(*looking, directory=tmp_path, keras=sick.keras).exit_code == 1, left_out


def assert_patch_makes(patch: str, before: bytes, after: str, folder: Path) -> None:
    place = folder / "patched"
    place.mkdir()
    (place / "train.py").write_bytes(before)
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    subprocess.run(["git", "apply"], cwd=place, input=patch, text=True, check=True)
    assert (place / "train.py").read_text() == after


CHAIN = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Boost(tf.keras.layers.Layer):
    def __init__(self, factor):
        super().__init__(name="boost")
        self.factor = factor

    def call(self, x):
        return x * self.factor * 100.0


model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(16, activation="relu", name="first"),
        Boost(1e4),
        tf.keras.layers.Dense(8, name="second"),
        tf.keras.layers.LayerNormalization(),
        tf.keras.layers.Dense(1, dtype="float32"),
    ]
)
x = np.random.rand(96, 8).astype("float32")
model.compile(tf.keras.optimizers.Adam(1e-3), "mse")
model.fit(x, x[:, :1] * 2 - 1, batch_size=16, epochs=9, verbose=0)
"""


ENERGY = CHAIN.replace(
    "        return x * self.factor * 100.0", "        return tf.sqrt(tf.square(300.0 * x) + 1.0)"
).replace("        tf.keras.layers.LayerNormalization(),\n", "")
CAST = "tf.square(tf.cast(300.0 * x, tf.float32))"
BOOST = 'super().__init__(name="boost", dtype="float32")'
SECOND = 'Dense(8, name="second", dtype="float32")'


@needs_keras("3")
@pytest.mark.parametrize(
    ("text", "edits"),
    [
        pytest.param(ENERGY, (CAST, "initial_scale="), id="one"),
        pytest.param(CHAIN, (BOOST, SECOND), id="two", marks=pytest.mark.slow),
    ],
)
def test_what_is_printed_can_be_applied(text: str, edits: tuple[str, ...], tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    done = mend("train.py", "--steps", "15", directory=tmp_path)
    assert done.exit_code == 0, done
    assert script.read_text() == text, "a file was touched without --write"
    assert f"train.py is mended by {len(edits)} edit" in done.stdout
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply"], cwd=tmp_path, input=done.stdout, text=True, check=True)
    assert [edit for edit in edits if edit not in script.read_text()] == []


FIT = """
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(3)
x = np.random.rand(320, 12, 12, 1).astype("float32")
model = keras.Sequential(
    [
        keras.Input((12, 12, 1)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x, np.random.randint(0, 10, 320), batch_size=32, epochs=6, verbose=0)
"""
LOOP = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(3)
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(1e-3)
x = np.random.rand(256, 8).astype("float32")


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(5):
    for start in range(0, 256, 16):
        train_step(tf.constant(x[start : start + 16]), tf.constant(x[start : start + 16, :1]))
"""
MASK = """
import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(3)


class Attention(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.query, self.key = layers.Dense(units), layers.Dense(units)

    def call(self, x, mask):
        scores = ops.matmul(self.query(x), ops.transpose(self.key(x), (0, 2, 1)))
        scores += (1.0 - ops.cast(mask, scores.dtype)) * -1e9
        return ops.matmul(ops.softmax(scores), x)


x, mask = keras.Input((6, 8)), keras.Input((1, 6))
outputs = layers.Dense(3, activation="softmax")(layers.GlobalAveragePooling1D()(Attention(8)(x, mask)))
model = keras.Model([x, mask], outputs)
model.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy")
xs = np.random.rand(128, 6, 8).astype("float32")
model.fit([xs, np.ones((128, 1, 6), "float32")], np.random.randint(0, 3, 128), epochs=9, verbose=0)
"""
SET = "Set the global policy to {}"
SWITCHED = [
    (FIT, "3", "mixed_float16", [SET, 'Give the layer dtype="float32"']),
    (FIT, "tf_keras", "mixed_bfloat16", [SET, 'Give the layer dtype="float32"']),
    (
        LOOP,
        "3",
        "mixed_float16",
        [SET, "Cast `model(x, training=True)` to float32", "Wrap the optimizer and scale the loss"],
    ),
    (
        LOOP,
        "tf_keras",
        "mixed_float16",
        [SET, "Cast `model(x, training=True)` to float32", "Wrap the optimizer and scale the loss"],
    ),
    (MASK, "3", "mixed_float16", [SET, "Write -1e4", 'Give the layer dtype="float32"']),
    (CHAIN, "3", "float32", [SET]),
]


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("text", "keras", "policy", "titles"),
    [
        pytest.param(*row, id=f"{number}-{row[1]}-{row[2]}", marks=needs_keras(row[1]))
        for number, row in enumerate(SWITCHED)
    ],
)
def test_a_program_is_switched_to_another_policy(
    text: str, keras: str, policy: str, titles: list[str], tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    done = mend("train.py", "--policy", policy, "--output-format", "json", "--write", directory=tmp_path, keras=keras)
    report = done.report
    assert (done.exit_code, report["mended"]) == (0, True), done
    assert sorted(done.titles()) == sorted(title.format(policy) for title in titles)
    checked = check("train.py", directory=tmp_path, keras=keras).report
    if policy != "float32":
        assert checked["summary"]["exit_code"] == 0
    computed = {layer["compute_dtype"] for model in report["after"]["models"] for layer in model["layers"]}
    assert policy.removeprefix("mixed_") in computed
    assert policy != "float32" or computed == {"float32"}
