"""Writes the `.keras` files that the tests examine: `python tests/saved_models.py DIRECTORY`.

It uses the Keras at hand: TF_USE_LEGACY_KERAS=1 makes it tf_keras.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

layers = tf.keras.layers


def trained(model: tf.keras.Model, loss: str, labels: np.ndarray) -> tf.keras.Model:
    """Trained one epoch: tf_keras cannot load a compiled mixed_float16 model that never trained."""
    model.compile(optimizer="adam", loss=loss)
    features = np.random.default_rng(1).normal(size=(len(labels), 12)).astype("float32")
    model.fit(features, labels, batch_size=32, epochs=1, verbose=0)
    return model


def network(output: tf.keras.layers.Layer) -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            layers.Input(shape=(12,)),
            layers.Dense(32, activation="relu", name="wide"),
            layers.Dense(16, activation="relu", name="narrow"),
            output,
        ]
    )


def main(directory: Path) -> None:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    tf.keras.utils.set_random_seed(1)
    kinds = np.random.default_rng(2).integers(0, 3, size=128)
    amounts = np.random.default_rng(3).normal(size=(128, 1)).astype("float32")
    softmax = layers.Dense(3, activation="softmax", dtype="float32", name="kinds")
    trained(network(softmax), "sparse_categorical_crossentropy", kinds).save(directory / "healthy.keras")
    trained(network(layers.Dense(1, name="amount")), "mse", amounts).save(directory / "half_output.keras")
    network(layers.Dense(1, dtype="float32", name="amount")).save(directory / "uncompiled.keras")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
