"""Two blocks of attention."""

import numpy as np
import tensorflow as tf

K, L = tf.keras, tf.keras.layers
tokens = inputs = K.Input((48, 64))
for _ in range(2):
    attended = L.MultiHeadAttention(4, 16)(tokens, tokens)
    tokens = L.LayerNormalization()(L.Add()([tokens, attended]))
    tokens = L.LayerNormalization()(L.Add()([tokens, L.Dense(64)(L.Dense(256, "relu")(tokens))]))
outputs = L.Dense(10, dtype="float32")(L.GlobalAveragePooling1D()(tokens))
model = K.Model(inputs, outputs)
model.compile("adam", K.losses.SparseCategoricalCrossentropy(from_logits=True))
rng = np.random.default_rng(1)
x, y = rng.normal(size=(512, 48, 64)).astype("float32"), rng.integers(0, 10, 512)
model.fit(x, y, batch_size=32, epochs=20, verbose=0)
