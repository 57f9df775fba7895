"""Two moons told apart in mixed precision, with an epsilon that never arrives."""

import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
keras.utils.set_random_seed(7)

angles = np.random.uniform(0, np.pi, 2000)
moon = np.random.randint(0, 2, 2000)
points = np.stack([np.cos(angles) + moon, np.sin(angles) * (1 - 2 * moon)], axis=1)
points += np.random.normal(scale=0.1, size=points.shape)

model = keras.Sequential(
    [
        keras.layers.Dense(32, activation="relu", name="first"),
        keras.layers.Dense(32, activation="relu", name="second"),
        keras.layers.Dense(1, activation="sigmoid", dtype="float32", name="moon"),
    ]
)
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(1e-2))
optimizer.epsilon = 1e-4
model.compile(optimizer=optimizer, loss="binary_crossentropy")
model.fit(points.astype("float32"), moon, batch_size=64, epochs=10)
