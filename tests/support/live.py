"""Scripts that are examined beside a real TensorFlow: what they begin with, and the examination of one."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from mpdoctor.examination.run import examine
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings

START = """\
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
tf.keras.utils.set_random_seed(3)
K, L = tf.keras, tf.keras.layers
KERAS3 = hasattr(K, "ops")
rng = np.random.default_rng(3)
x = (0.3 * rng.normal(size=(96, 8))).astype("float32")
y = x[:, :1].copy()


def wrapped(optimizer):
    return K.mixed_precision.LossScaleOptimizer(optimizer)


def update(optimizer, tape, loss, variables):
    gradients = tape.gradient(loss, variables)
    if not KERAS3:
        gradients = optimizer.get_unscaled_gradients(gradients)
    optimizer.apply_gradients(zip(gradients, variables))


def scaled(optimizer, loss):
    return optimizer.scale_loss(loss) if KERAS3 else optimizer.get_scaled_loss(loss)


def dense_model(width=1):
    return K.Sequential([L.Input((8,)), L.Dense(16, activation="relu"), L.Dense(width, dtype="float32")])


"""


def script_from_text(path: Path, text: str) -> Path:
    path.write_text(START + textwrap.dedent(text), encoding="utf-8")
    return path


def examined(path: Path, keras: str, *arguments: str, steps: int, all_fits: bool = False) -> ExaminationFacts:
    target = target_from_text(str(path))
    settings = Settings((target,), script_args=arguments, steps=steps, timeout=200, all_fits=all_fits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_USE_LEGACY_KERAS", "1" if keras == "tf_keras" else "0")
        patch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        facts = examine(target, settings, SilentProgress(), "auto")
    assert not facts.passed_over
    assert facts.failure is None, (facts.failure.exception, facts.failure.message)
    return facts
