import keras
keras.config.set_dtype_policy("mixed_float16")
opt = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(), initial_scale=2**15, dynamic=True)
opt2 = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(), dynamic=False, initial_scale=128)
m = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
m.compile(opt, "mse")
