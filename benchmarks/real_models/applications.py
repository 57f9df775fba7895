"""One architecture of keras.applications, random weights, its smallest input: `python applications.py MobileNetV2`."""

import sys

import numpy as np
import tensorflow as tf

SMALLEST_SIDE = {"Xception": 71, "InceptionV3": 75, "InceptionResNetV2": 75}

tf.keras.mixed_precision.set_global_policy("mixed_float16")
tf.keras.utils.set_random_seed(1)

name = sys.argv[1]
side = SMALLEST_SIDE.get(name, 32)
backbone = getattr(tf.keras.applications, name)(
    weights=None, include_top=False, input_shape=(side, side, 3), pooling="avg"
)
model = tf.keras.Sequential([backbone, tf.keras.layers.Dense(10, activation="softmax", dtype="float32")])
model.compile("adam", "sparse_categorical_crossentropy")

rng = np.random.default_rng(1)
images = rng.uniform(-1, 1, (64, side, side, 3)).astype("float32")
model.fit(images, rng.integers(0, 10, 64), batch_size=16)
