"""`mpdoctor compare` without TensorFlow: what is refused, before anything is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checking import needs_keras

from mpdoctor.cli.options.compare_options import policies_from_text

SCRIPT = """\
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("sgd", "mse")
model.fit(np.ones((64, 8), "float32"), np.ones((64, 1), "float32"), epochs=3)
"""
LOOP = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1, dtype="float32")])
optimizer = tf.keras.optimizers.SGD(0.01)

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

for _ in range(25):
    step(tf.ones((64, 8)))
"""


def compare(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mpdoctor", "compare", *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("src",), "compare runs a script, a notebook or a function that makes a model"),
        (("--report", "a.xml", "a.py"), "a comparison is written as"),
        (("-",), "standard input (-) comes only once: name a file"),
        (("--policies", "float32", "a.py"), "name at least two"),
    ],
)
def test_what_is_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "a.py").write_text("raise SystemExit(7)\n")
    done = compare(*arguments, cwd=tmp_path)
    told = " ".join(done.stderr.replace("│", " ").split())
    assert done.returncode == 2 and words in told and not done.stdout, done.stderr


def test_policies_are_named_with_commas() -> None:
    assert policies_from_text(" mixed_float16, float32,float32") == ("mixed_float16", "float32")
    for wrong in ("", "float32", "float32,float32", "float32,bfloat16"):
        with pytest.raises(ValueError):
            policies_from_text(wrong)


@pytest.mark.slow
@needs_keras("3")
def test_a_script_is_compared(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    written = ("--report", "page.html", "--report", "page.md", "--report", "told.json")
    policies = ("--policies", "float32,mixed_bfloat16", "--rounds", "1", "--steps", "12")
    done = compare(*policies, *written, "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = {line[2:25].strip(): line[25:].split() for line in done.stdout.splitlines() if line.startswith("  ")}
    assert table["layers in 16 bits"] == ["0", "of", "2", "1", "of", "2"], done.stdout
    assert table["verdict"] == ["healthy", "healthy"] and len(table["time a step"]) == 4
    assert table["casts in the graph"][0] == "0" and int(table["casts in the graph"][1]) > 0
    assert (tmp_path / "train.py").read_text() == SCRIPT
    names = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert names == {"train.py", "page.html", "page.md", "told.json"}


@pytest.mark.slow
@needs_keras("3")
def test_a_loop_is_timed_that_ends_before_as_many_steps_as_are_wanted(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    done = compare("--policies", "float32,mixed_bfloat16", "--rounds", "1", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = {line[2:25].strip(): line[25:].split() for line in done.stdout.splitlines() if line.startswith("  ")}
    assert len(table["time a step"]) == 4 and "was not timed" not in done.stdout, done.stdout
    assert "not timed one by one: the training had ended by then" in done.stdout
    assert "peak memory, process" not in table  # what comes behind the training counts in that
