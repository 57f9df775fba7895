"""The training step of a program, timed as it is, in each Keras: fit(), train_on_batch(), loops; and where none can."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import needs_keras
from environments import ENVIRONMENTS, Environment, needs_environment

from mpdoctor.examination.run import examine
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings

START = """\
import sys

import numpy as np
import tensorflow as tf

K, L = tf.keras, tf.keras.layers
SET = getattr(K.mixed_precision, "set_global_policy", None) or K.mixed_precision.experimental.set_policy
SET("mixed_float16")
x = np.random.default_rng(3).normal(size=(96, 8)).astype("float32")
y = x[:, :1].copy()
model = K.Sequential([L.InputLayer(shape=(8,)) if hasattr(K, "ops") else L.InputLayer((8,)),
                      L.Dense(16, activation="relu"), L.Dense(1, dtype="float32")])
"""
FIT = "model.compile('sgd', 'mse')\nmodel.fit(x, y, batch_size=32, epochs=2)\n"
BATCHES = "model.compile('sgd', 'mse')\nfor _ in range(90):\n    model.train_on_batch(x, y)\n"
EAGER = "model.compile('sgd', 'mse', run_eagerly=True)\nmodel.fit(x, y, epochs=2)\n"
RAISES = "model.compile('sgd', lambda a, b: no_such_name)\nmodel.fit(x, y)\n"
SHORT = "model.compile('sgd', 'mse')\nfor _ in range(3):\n    model.train_on_batch(x, y)\n"
FACTORY = "def build():\n    model.compile('sgd', 'mse')\n    return model\n"
LOOP = """
optimizer = K.optimizers.SGD(0.1)

@tf.function
def step(batch, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.cast(model(batch), tf.float32) - labels) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss

for batch, labels in tf.data.Dataset.from_tensor_slices((x, y)).batch(32).repeat(60):
    step(batch, labels)
"""


def timed(folder: Path, text: str, policy: str, python: Path | None = None, legacy: bool = False) -> ExaminationFacts:
    path = folder / "train.py"
    path.write_text(START + text)
    target = target_from_text(f"{path}:build" if text is FACTORY else str(path))
    settings = Settings((target,), steps=20, timeout=200, what_if=False, python=python, holds_policy=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_USE_LEGACY_KERAS", "1" if legacy else "0")
        patch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        return examine(target, settings, SilentProgress(), policy, timed=True)


def looks_right(seen: ExaminationFacts, of: str, has_casts: bool) -> None:
    timing = seen.timing
    assert timing is not None, (seen.not_timed, seen.failure)
    assert timing.of == of and timing.device == "CPU"
    assert len(timing.blocks) * timing.steps_a_block >= 20
    assert all(0 <= between < took < 5 for took, between in timing.blocks)
    assert timing.resident_peak is not None and timing.resident_before is not None
    assert 2**26 < timing.resident_before <= timing.resident_peak < 2**33
    assert (timing.casts, bool(timing.casts)) == (timing.casts, has_casts)
    assert timing.profile is not None, timing.not_profiled
    assert 0 < timing.profile.busy < timing.profile.seconds
    kinds = {known.kind for known in timing.profile.operations}
    assert any("MatMul" in kind for kind in kinds), kinds
    layers = {layer.path: layer for layer in timing.profile.layers}
    assert len(layers) == 2 and all("dense" in path for path in layers), layers
    assert [layers[path].dtype == "float32" for path in sorted(layers)] == [not has_casts, True]
    assert sum(layer.seconds for layer in layers.values()) < timing.profile.in_operations


@needs_keras("3")
def test_a_fit_whose_program_sets_another_policy(tmp_path: Path) -> None:
    looks_right(timed(tmp_path, FIT, "mixed_bfloat16"), "fit", True)


CASES = [
    pytest.param(FACTORY, "float32", "fit", False, id="factory"),
    pytest.param(BATCHES, "mixed_bfloat16", "train_on_batch", True, id="batches"),
    pytest.param(LOOP, "mixed_bfloat16", "loop", True, id="loop"),
]


@needs_keras("3")
@pytest.mark.slow
@pytest.mark.parametrize(("text", "policy", "of", "has_casts"), CASES)
def test_other_ways_to_train(tmp_path: Path, text: str, policy: str, of: str, has_casts: bool) -> None:
    looks_right(timed(tmp_path, text, policy), of, has_casts)


@needs_keras("3")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(EAGER, "its step runs eagerly", id="eager"),
        pytest.param(RAISES, "its training raises", id="raises"),
        pytest.param(SHORT, "it ended after 3 steps", id="short"),
    ],
)
def test_why_there_is_no_time(tmp_path: Path, text: str, reason: str) -> None:
    seen = timed(tmp_path, text, "mixed_bfloat16")
    assert seen.timing is None and seen.not_timed.startswith(reason), (seen.not_timed, seen.failure)


@pytest.mark.environments
@pytest.mark.parametrize(
    "environment",
    [pytest.param(known, marks=needs_environment(known), id=known.keras) for known in ENVIRONMENTS[:-1]],
)
def test_steps_are_timed_in_every_keras(tmp_path: Path, environment: Environment) -> None:
    text = FIT if environment.keras in ("2.4", "tf_keras") else LOOP
    seen = timed(tmp_path, text, "mixed_float16", environment.python, legacy=environment.keras == "tf_keras")
    looks_right(seen, "fit" if text is FIT else "loop", True)
