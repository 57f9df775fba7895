"""A small multilayer perceptron: most of its step is starting operations."""

import numpy as np
import tensorflow as tf

K, L = tf.keras, tf.keras.layers
model = K.Sequential([K.Input((64,)), L.Dense(64, "relu"), L.Dense(64, "relu"), L.Dense(10, dtype="float32")])
model.compile("adam", K.losses.SparseCategoricalCrossentropy(from_logits=True))
rng = np.random.default_rng(1)
x, y = rng.normal(size=(2048, 64)).astype("float32"), rng.integers(0, 10, 2048)
model.fit(x, y, batch_size=64, epochs=20, verbose=0)
