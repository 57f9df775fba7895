"""What a wrapper's loss scale starts from, and what is said where nobody knows it."""

from __future__ import annotations

import pytest
from judging import facts_of, findings_in

LOOP = """\
import argparse
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
parser = argparse.ArgumentParser()
parser.add_argument("--scale", type=float, default=65536.0)
parser.add_argument("--other", type=float)
args = parser.parse_args()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(), {given})

def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
        scaled = optimizer.get_scaled_loss(loss)
    gradients = tape.gradient(scaled, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""


@pytest.mark.fast
@pytest.mark.parametrize(
    ("given", "infinite", "applied"),
    [
        ("dynamic=True", "of 32768 it is inf from 2.0 on", "is 32768 times too large"),
        ("initial_scale=1024", "of 1024 it is inf from 64 on", "is 1024 times too large"),
        (
            "dynamic=False, initial_scale=args.scale",
            "of 65536 it is inf whatever the loss is, because the scale is",
            "65536",
        ),
        (
            "initial_scale=args.other",
            "of `initial_scale` it is inf as soon as the product passes 65504",
            "`initial_scale`",
        ),
        (
            "initial_scale=2.0**10 if args.other else 2.0**12",
            "of `initial_scale` it is inf as soon as",
            "`initial_scale`",
        ),
    ],
)
def test_a_scale_is_told_where_it_is_known(given: str, infinite: str, applied: str) -> None:
    told = {finding.code: finding.message for finding in findings_in(facts_of(LOOP.format(given=given), "tf_keras"))}
    assert infinite in told["MP408"] and applied in told["MP402"]
