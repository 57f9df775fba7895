"""Convolutions with batch normalisation."""

import numpy as np
import tensorflow as tf

K, L = tf.keras, tf.keras.layers
blocks = [
    layer
    for width in (32, 64)
    for layer in (L.Conv2D(width, 3), L.BatchNormalization(), L.Activation("relu"), L.MaxPooling2D())
]
model = K.Sequential([K.Input((32, 32, 3)), *blocks, L.GlobalAveragePooling2D(), L.Dense(10, dtype="float32")])
model.compile("adam", K.losses.SparseCategoricalCrossentropy(from_logits=True))
rng = np.random.default_rng(1)
x, y = rng.normal(size=(512, 32, 32, 3)).astype("float32"), rng.integers(0, 10, 512)
model.fit(x, y, batch_size=32, epochs=20, verbose=0)
