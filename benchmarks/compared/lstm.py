"""A recurrent layer over an embedding, whose vocabulary is no multiple of 8."""

import numpy as np
import tensorflow as tf

K, L = tf.keras, tf.keras.layers
model = K.Sequential([K.Input((32,)), L.Embedding(1001, 64), L.LSTM(64), L.Dense(1, dtype="float32")])
model.compile("adam", K.losses.BinaryCrossentropy(from_logits=True))
rng = np.random.default_rng(1)
x, y = rng.integers(0, 1001, (1024, 32)), rng.integers(0, 2, (1024, 1)).astype("float32")
model.fit(x, y, batch_size=32, epochs=20, verbose=0)
