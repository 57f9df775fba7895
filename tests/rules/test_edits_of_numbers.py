"""What is cast, and where, by the edits of rules about numbers."""

from __future__ import annotations

import pytest
from test_fixes_of_rules import in_rounds

pytestmark = pytest.mark.fast

LAYER = """import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Own(tf.keras.layers.Layer):
    def call(self, x):
        return x, {line}
"""
ARRAY = """import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Own(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.embed = tf.keras.layers.Embedding(30, 8)

    def call(self, inputs):
        {taken}
        steps = tf.TensorArray({dtype}, size=4)
        for i in tf.range(4):
            steps = steps.write(i, {value})
        return steps.stack()
"""


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("tf.reduce_sum(tf.square(x - 1.0))", "tf.reduce_sum(tf.square(tf.cast(x - 1.0, tf.float32)))"),
        ("tf.reduce_sum(x**2)", "tf.reduce_sum(tf.cast(x, tf.float32) ** 2)"),
        ("tf.reduce_sum((x - 1.0) ** 2)", "tf.reduce_sum(tf.cast(x - 1.0, tf.float32) ** 2)"),
        ("tf.reduce_sum(x)", "tf.reduce_sum(tf.cast(x, tf.float32))"),
        (
            "tf.complex(x, tf.zeros_like(x))",
            "tf.complex(tf.cast(x, tf.float32), tf.cast(tf.zeros_like(x), tf.float32))",
        ),
        ("tf.complex(x, tf.zeros(4))", "tf.complex(tf.cast(x, tf.float32), tf.zeros(4))"),
    ],
)
def test_all_is_cast_that_needs_it_and_before_it_is_computed_with(line: str, wanted: str) -> None:
    assert in_rounds(LAYER.format(line=line), "3", unsafe=True) == LAYER.format(line=wanted)


@pytest.mark.parametrize(
    ("taken", "value", "dtype"),
    [
        ("x = inputs", "x * 0.5", "inputs.dtype"),
        ("x, mask = inputs", "x * 0.5", "self.compute_dtype"),  # a tuple has no dtype
        ("x = inputs[0]", "x * 0.5", "self.compute_dtype"),
        ("x = self.embed(inputs)", "x[:, i]", "self.compute_dtype"),  # ids are of int32
    ],
)
def test_an_array_gets_the_dtype_of_what_is_written(taken: str, value: str, dtype: str) -> None:
    assert in_rounds(
        ARRAY.format(taken=taken, value=value, dtype="tf.float32"), "tf_keras", unsafe=True
    ) == ARRAY.format(taken=taken, value=value, dtype=dtype)


LOOP = """import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
made = {{"kernel_initializer": "he_normal"}}
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(3, activation={activation}, **made)])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(1e-3))


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        p = {prediction}
        loss = tf.reduce_mean(tf.square(y - p))
        scaled = optimizer.scale_loss(loss)
    grads = tape.gradient(scaled, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""


@pytest.mark.parametrize(
    ("activation", "wanted"),
    [
        ("None", "tf.cast(model(x, training=True), tf.float32)"),
        ('"softmax"', "model(x, training=True)"),  # its last layer takes no edit, and a cast brings no digits back
    ],
)
def test_no_cast_stands_behind_a_softmax_in_16_bits(activation: str, wanted: str) -> None:
    before = LOOP.format(activation=activation, prediction="model(x, training=True)")
    after = LOOP.format(activation=activation, prediction=wanted)
    assert in_rounds(before, "3", unsafe=True) == after


OWN_LOSS = """import tensorflow as tf
tf.keras.mixed_precision.set_global_policy("mixed_float16")
def loss(wanted, guessed):
    wanted = tf.cast(wanted, guessed.dtype)
    return -tf.reduce_mean(
        wanted * tf.math.log(guessed + {0}) + (1 - wanted) * tf.math.log(1 - guessed + {0})
    )
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, activation="sigmoid"{1})])
model.compile("adam", loss)
model.fit(x, y)
"""


def test_two_epsilons_of_one_line_are_written_in_one_round_with_the_float32_layer_that_would_hide_the_second() -> None:
    after = OWN_LOSS.format("1e-4", ', dtype="float32"')
    assert in_rounds(OWN_LOSS.format("1e-8", ""), "tf_keras", unsafe=True) == after


DIVIDING = """{imports}

keras.mixed_precision.set_global_policy("mixed_float16")


class Unit(keras.layers.Layer):
    def call(self, x):
        length = {norm}
        return {quotient}
"""
OF_TENSORFLOW = ("import tensorflow as tf\nfrom tensorflow import keras", "tf.norm(x, axis=-1, keepdims=True)")
OF_OPS = ("import keras\nfrom keras import ops", "ops.norm(x, axis=-1, keepdims=True)")


@pytest.mark.parametrize(
    ("written", "quotient", "wanted"),
    [
        (OF_TENSORFLOW, "x / (length + 1e-9)", "tf.math.divide_no_nan(x, length)"),
        (OF_TENSORFLOW, "1.0 / (length + 1e-9)", "tf.math.reciprocal_no_nan(length)"),
        (OF_OPS, "x / ops.maximum(length, 1e-9)", "ops.divide_no_nan(x, length)"),
        (OF_TENSORFLOW, "x / (\n            length + 1e-9\n        )", ""),
        (OF_TENSORFLOW, "tf.math.log(x / (length + 1e-9))", ""),  # the logarithm of 0 is -inf
        (OF_TENSORFLOW, "tf.divide(x, length + 1e-9)", ""),
    ],
)
def test_a_division_by_a_vanishing_epsilon_gives_0(written: tuple[str, str], quotient: str, wanted: str) -> None:
    text, after = (
        DIVIDING.format(imports=written[0], norm=written[1], quotient=each) for each in (quotient, wanted or quotient)
    )
    assert in_rounds(text, "3", unsafe=True) == after
