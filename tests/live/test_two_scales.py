"""The size of an update is compared at two loss scales in steps that are more than a tape and an apply call, beside a
real TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import needs_keras
from live import examined, script_from_text

EACH_EXAMPLE = """\
model = dense_model()
optimizer = wrapped(K.optimizers.SGD(0.1))

@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        losses = optimizer.get_scaled_loss(tf.reduce_mean(tf.square(b - model(a)), axis=-1))
    each = tape.jacobian(losses, model.trainable_variables)
    {unscaled_first}
    squares = [tf.reduce_sum(tf.reshape(one, (16, -1)) ** 2, axis=1) for one in each]
    factor = tf.minimum(1.0, 0.01 / tf.sqrt(tf.add_n(squares)))
    gradients = [tf.tensordot(factor, one, 1) / 16.0 for one in each]
    {unscaled_last}
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

for number in range(20):
    step(rng.normal(size=(16, 8)).astype("float32"), rng.normal(size=(16, 1)).astype("float32"))
"""
# Built in the block's own build(), both kernels have the name "block/kernel" in Keras 2.
RECOMPUTED = """\
class Block(K.layers.Layer):
    def build(self, shape):
        self.wide, self.narrow = K.layers.Dense(24, activation="relu"), K.layers.Dense(8)
        self.wide.build(shape)
        self.narrow.build((None, 24))
        super().build(shape)

    def call(self, inputs):
        return inputs + tf.recompute_grad(lambda x: self.narrow(self.wide(x)))(inputs)

model = K.Sequential([K.Input((8,)), Block(), K.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(rng.normal(size=(320, 8)).astype("float32"), rng.normal(size=(320, 1)).astype("float32"), batch_size=16)
"""
UNSCALED = "{} = optimizer.get_unscaled_gradients({})"
EACH, ALL = UNSCALED.format("each", "each"), UNSCALED.format("gradients", "gradients")


@pytest.mark.parametrize(
    ("script", "exponent"),
    [
        pytest.param(
            EACH_EXAMPLE.format(unscaled_first="pass", unscaled_last=ALL), -1.0, id="each-clipped-while-scaled"
        ),
        pytest.param(
            EACH_EXAMPLE.format(unscaled_first=EACH, unscaled_last="pass"),
            0.0,
            id="each-clipped",
            marks=pytest.mark.slow,
        ),
        pytest.param(RECOMPUTED, 0.0, id="two-weights-of-one-name"),
    ],
)
@needs_keras("tf_keras")
def test_it_is_compared(script: str, exponent: float, tmp_path: Path) -> None:
    (training,) = examined(script_from_text(tmp_path / "train.py", script), "tf_keras", steps=12).trainings
    assert training.scale_dependence is not None, training.not_looked
    assert training.scale_dependence.median == pytest.approx(exponent, abs=0.05)
