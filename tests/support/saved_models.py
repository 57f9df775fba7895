"""Writes the saved models that the tests examine: `python tests/support/saved_models.py DIRECTORY`.

It uses the Keras at hand: TF_USE_LEGACY_KERAS=1 makes it tf_keras. Keras 2 writes SavedModels that can be trained on;
the graphs of both are for inference alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
IS_KERAS3 = hasattr(tf.keras, "ops")


class Doubled(layers.Layer):
    """A class that no other program knows."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return x * 2


class Energy(tf.Module):
    """A graph in float16 that no Keras made, with a loop in it."""

    def __init__(self) -> None:
        super().__init__()
        self.half = tf.Variable(tf.ones((12, 4), tf.float16), name="half")
        self.whole = tf.Variable(tf.ones((4, 4)), name="whole")

    @tf.function(input_signature=[tf.TensorSpec((None, 12), tf.float16)])
    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        made = tf.matmul(x, self.half)
        total = tf.constant(0.0, tf.float16)
        for _ in tf.range(3):
            total += tf.reduce_sum(tf.exp(made))
        return {"energy": total, "made": tf.matmul(tf.cast(made, tf.float32), self.whole)}


def trained(model: tf.keras.Model, loss: str, labels: np.ndarray) -> tf.keras.Model:
    """Trained one epoch: tf_keras cannot load a compiled mixed_float16 model that never trained."""
    model.compile(optimizer="adam", loss=loss)
    features = np.random.default_rng(1).normal(size=(len(labels), 12)).astype("float32")
    model.fit(features, labels, batch_size=32, epochs=1, verbose=0)
    return model


def network(output: tf.keras.layers.Layer, *inside: tf.keras.layers.Layer) -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            layers.Input(shape=(12,)),
            layers.Dense(32, activation="relu", name="wide"),
            *inside,
            layers.Dense(16, activation="relu", name="narrow"),
            output,
        ]
    )


def amount(dtype: str = "float32") -> tf.keras.layers.Layer:
    return layers.Dense(1, dtype=dtype, name="amount")


def main(directory: Path) -> None:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    tf.keras.utils.set_random_seed(1)
    kinds = np.random.default_rng(2).integers(0, 3, size=128)
    amounts = np.random.default_rng(3).normal(size=(128, 1)).astype("float32")
    healthy = trained(
        network(layers.Dense(3, activation="softmax", dtype="float32", name="kinds")),
        "sparse_categorical_crossentropy",
        kinds,
    )
    healthy.save(directory / "healthy.keras")
    healthy.save(directory / "healthy.h5")
    tf.saved_model.save(healthy, str(directory / "healthy_graph"))
    trained(network(amount("mixed_float16")), "mse", amounts).save(directory / "half_output.keras")
    network(amount()).save(directory / "uncompiled.keras")
    healthy.save_weights(directory / "healthy.weights.h5")
    for name, layer in (("code", layers.Lambda(lambda x: x * 2, name="double")), ("own", Doubled(name="doubled"))):
        model = network(amount(), layer)
        for suffix in (".keras", ".h5", *([] if IS_KERAS3 else ["_directory"])):
            model.save(directory / f"{name}{suffix}")
    tf.saved_model.save(Energy(), str(directory / "energy_graph"))
    if not IS_KERAS3:
        healthy.save(directory / "healthy_directory")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
