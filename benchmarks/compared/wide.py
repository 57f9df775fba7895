"""Wide layers and a large batch: most of its step is matrix products."""

import numpy as np
import tensorflow as tf

K, L = tf.keras, tf.keras.layers
hidden = [L.Dense(1024, "relu") for _ in range(3)]
model = K.Sequential([K.Input((1024,)), *hidden, L.Dense(10, dtype="float32")])
model.compile("sgd", K.losses.SparseCategoricalCrossentropy(from_logits=True))
rng = np.random.default_rng(1)
x, y = rng.normal(size=(2048, 1024)).astype("float32"), rng.integers(0, 10, 2048)
model.fit(x, y, batch_size=256, epochs=20, verbose=0)
