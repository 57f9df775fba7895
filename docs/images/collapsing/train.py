"""The loudness of waves, squared before it is divided: float16 ends at 65504."""

import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
keras.utils.set_random_seed(7)


class Energy(keras.layers.Layer):
    def call(self, waves):
        return keras.ops.sum(keras.ops.square(waves), axis=1) / waves.shape[1]


loud = np.random.randint(0, 2, 512)
waves = np.random.normal(size=(512, 200, 1)) * (50 + 400 * loud[:, None, None])

model = keras.Sequential(
    [
        keras.layers.Conv1D(8, 5, padding="same", name="filters"),
        Energy(name="energy"),
        keras.layers.Dense(1, activation="sigmoid", dtype="float32", name="loud"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(waves.astype("float32"), loud, batch_size=32, epochs=4)
