"""An observed eager loop trains on the same batches as without mpdoctor, beside a real TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checking import needs_keras
from live import examined, script_from_text

STEPS = 12
LOOP = """\
model = dense_model()
optimizer = {optimizer}
losses = []
for number in range(20):
    a, b = rng.normal(size=(16, 8)).astype("float32"), rng.normal(size=(16, 1)).astype("float32")
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(b - model(a)))
        at_scale = {scaled}
    gradients = tape.gradient(at_scale, model.trainable_variables)
    {then}
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    losses.append(float(loss))
print(losses)
"""
FIXED = "K.mixed_precision.LossScaleOptimizer(K.optimizers.{}, dynamic=False, initial_scale=1024.0)"
UNSCALED = "gradients = optimizer.get_unscaled_gradients(gradients)"
CLIPPED = "gradients, _ = tf.clip_by_global_norm(gradients, 0.5)"


def loop(optimizer: str, scaled: str = "scaled(optimizer, loss)", then: str = "pass") -> str:
    return LOOP.format(optimizer=optimizer, scaled=scaled, then=then)


LOOPS = [
    ("fixed", "tf_keras", loop(FIXED.format("SGD(0.1)"), then=UNSCALED)),
    ("fixed-and-clipped", "tf_keras", loop(FIXED.format("Adam(0.1)"), then=f"{UNSCALED}; {CLIPPED}")),
    ("a-factor", "3", loop("K.optimizers.SGD(0.1, loss_scale_factor=1024.0)")),
    ("a-factor-and-clipped", "3", loop("K.optimizers.Adam(0.1, loss_scale_factor=1024.0, global_clipnorm=0.5)")),
    ("dynamic", "3", loop("wrapped(K.optimizers.SGD(0.1))")),
    ("dynamic", "tf_keras", loop("wrapped(K.optimizers.SGD(0.1))", then=UNSCALED)),
]


@pytest.mark.parametrize(
    ("keras", "script"),
    [
        pytest.param(
            keras, text, id=f"{name}-{keras}",
            marks=[needs_keras(keras), *([] if (name, keras) == ("dynamic", "3") else [pytest.mark.slow])],
        )
        for name, keras, text in LOOPS
    ],
)  # fmt: skip
def test_the_losses_are_those_of_the_program_alone(keras: str, script: str, tmp_path: Path) -> None:
    path = script_from_text(tmp_path / "train.py", script)
    legacy = "1" if keras == "tf_keras" else "0"
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": legacy, "TF_CPP_MIN_LOG_LEVEL": "3"}
    alone = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, check=True)
    (training,) = examined(path, keras, steps=STEPS).trainings
    seen = [step.loss for step in training.steps]
    assert len(seen) == STEPS
    assert seen == pytest.approx(json.loads(alone.stdout)[:STEPS], rel=1e-5)
    dependence = training.scale_dependence
    assert dependence is not None and abs(dependence.median) < 0.05 and dependence.is_scaled
