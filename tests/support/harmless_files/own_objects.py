"""A user's own classes and functions, as --custom-objects names them: some registered with Keras, some not."""

import os

import tensorflow as tf

if os.environ.get("HARMLESS_KERAS") == "3":
    import keras
elif os.environ.get("HARMLESS_KERAS") == "tf_keras":
    import tf_keras as keras
else:
    from tensorflow import keras

saving = getattr(keras, "saving", None)
register = getattr(saving, "register_keras_serializable", None) or keras.utils.register_keras_serializable


class Scaled(keras.layers.Layer):
    def __init__(self, factor=2.0, **more):
        super().__init__(**more)
        self.factor = factor

    def call(self, x):
        return x * self.factor

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


@register(package="mine")
class Shifted(keras.layers.Layer):
    def __init__(self, units=4, **more):
        super().__init__(**more)
        self.units = units

    def build(self, shape):
        self.shift = self.add_weight(name="shift", shape=(self.units,), initializer="zeros")
        super().build(shape)

    def call(self, x):
        return x + tf.cast(self.shift, x.dtype)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class Twice(keras.layers.Layer):
    """Holds another layer."""

    def __init__(self, inner=None, **more):
        super().__init__(**more)
        self.inner = keras.layers.deserialize(inner) if isinstance(inner, dict) else inner

    def call(self, x):
        return self.inner(self.inner(x))

    def get_config(self):
        return {**super().get_config(), "inner": keras.layers.serialize(self.inner)}


class Network(keras.Model):
    """A subclassed model with a configuration."""

    def __init__(self, width=4, **more):
        super().__init__(**more)
        self.width = width
        self.first, self.second = keras.layers.Dense(width, activation="relu"), keras.layers.Dense(1)

    def call(self, x):
        return self.second(self.first(x))

    def get_config(self):
        return {"width": self.width}


def squared(x):
    return x * x


def own_loss(y, predicted):
    return tf.reduce_mean(tf.abs(y - predicted))


@register(package="mine")
def registered_activation(x):
    return tf.nn.relu(x) * 2.0


class OwnInitializer(keras.initializers.Initializer):
    def __call__(self, shape, dtype=None, **more):
        return tf.ones(shape, dtype or "float32") * 0.1

    def get_config(self):
        return {}
