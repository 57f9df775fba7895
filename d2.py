import numpy as np
import keras
keras.config.set_dtype_policy("mixed_float16")
m = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
m.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(), initial_scale=2**15, dynamic=True), "mse")
m.fit(np.ones((4, 3)), np.ones(4))
