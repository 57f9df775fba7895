"""Sound models and data of six kinds: dense, convolutional, recurrent, attention, embeddings, with normalisation."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .writing import Program

ATTENTION = """class Block(keras.layers.Layer):
    def __init__(self, width, heads, **kwargs):
        super().__init__(**kwargs)
        self.attend = keras.layers.MultiHeadAttention(heads, width // heads)
        self.norm = keras.layers.LayerNormalization()
        self.wide = keras.layers.Dense(2 * width, activation="{activation}")
        self.narrow = keras.layers.Dense(width)

    def call(self, x):
        x = self.norm(x + self.attend(x, x))
        return x + self.narrow(self.wide(x))"""
SCORES = """class Attend(keras.layers.Layer):
    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.query = keras.layers.Dense(width)
        self.key = keras.layers.Dense(width)
        self.value = keras.layers.Dense(width)
        self.width = width

    def call(self, x):
        scores = tf.matmul(self.query(x), self.key(x), transpose_b=True) * self.width**-0.5
        return tf.matmul(tf.nn.softmax(scores), self.value(x))"""


def dense(program: Program) -> None:
    random = program.random
    program.shape = (random.choice((6, 8, 12, 20)),)
    for number in range(random.randint(1, 3)):
        units, activation = random.choice((8, 16, 24)), random.choice(("relu", "tanh", "gelu", "elu", "swish"))
        program.layers.append((f"dense{number}", f'keras.layers.Dense({units}, activation="{activation}")'))
        program.layers += between(random, number)


def between(random: Random, number: int) -> list[tuple[str, str]]:
    chosen = random.choice(("", "", "BatchNormalization()", "LayerNormalization()", "Dropout(0.2)"))
    return [(f"between{number}", f"keras.layers.{chosen}")] if chosen else []


def convolution(program: Program) -> None:
    random = program.random
    size, channels = random.choice((8, 12, 16)), random.choice((1, 3))
    program.shape = (size, size, channels)
    for number in range(random.randint(1, 2)):
        filters = random.choice((4, 8))
        program.layers.append(
            (f"conv{number}", f'keras.layers.Conv2D({filters}, 3, padding="same", activation="relu")')
        )
        if random.random() < 0.5:
            program.layers.append((f"norm{number}", "keras.layers.BatchNormalization()"))
        program.layers.append((f"pool{number}", "keras.layers.MaxPooling2D()"))
    flat = random.choice(("Flatten()", "GlobalAveragePooling2D()"))
    program.layers.append(("flat", f"keras.layers.{flat}"))


def recurrent(program: Program) -> None:
    random = program.random
    program.shape = (random.choice((6, 10)), random.choice((3, 5)))
    cell = f"keras.layers.{random.choice(('LSTM', 'GRU', 'SimpleRNN'))}({random.choice((8, 12))})"
    if random.random() < 0.3:
        cell = f"keras.layers.Bidirectional({cell})"
    program.layers.append(("cell", cell))
    program.layers += between(random, 0)


def attention(program: Program) -> None:
    random = program.random
    program.shape = (random.choice((6, 8)), 5)
    width = random.choice((8, 16))
    program.layers.append(("embed", f"keras.layers.Dense({width})"))
    if random.random() < 0.6:
        program.definitions.append(ATTENTION.replace("{activation}", random.choice(("relu", "gelu"))))
        program.layers.append(("block", f"Block({width}, 2)"))
    else:
        program.definitions.append(SCORES)
        program.layers.append(("attend", f"Attend({width})"))
    program.layers.append(("pool", "keras.layers.GlobalAveragePooling1D()"))


def embedding(program: Program) -> None:
    random = program.random
    program.shape, program.ids = (random.choice((6, 9)),), True
    program.layers.append(("words", f"keras.layers.Embedding(40, {random.choice((6, 8))})"))
    after = random.choice(("GRU(8)", 'Conv1D(8, 3, activation="relu")', ""))
    if after:
        program.layers.append(("after", f"keras.layers.{after}"))
    if "GRU" not in after:
        program.layers.append(("pool", "keras.layers.GlobalAveragePooling1D()"))


BODIES: dict[str, Callable[[Program], None]] = {
    "dense": dense,
    "convolution": convolution,
    "recurrent": recurrent,
    "attention": attention,
    "embedding": embedding,
}


def features(program: Program) -> str:
    """The line that makes `x`."""
    shape = ", ".join(str(size) for size in program.shape)
    if program.ids:
        return f'x = rng.integers(0, 40, size=(BATCH * BATCHES, {shape})).astype("int32")'
    return f'x = rng.normal(size=(BATCH * BATCHES, {shape})).astype("float32")'


def head(program: Program) -> None:
    """The last layers, in float32, with labels and a loss that fit them."""
    random = program.random
    program.data.append(features(program))
    flat = "x.reshape(len(x), -1).astype('float32')"
    kind = random.choice(("regression", "logits", "softmax", "binary"))
    if kind == "regression":
        program.layers.append(("head", 'keras.layers.Dense(1, dtype="float32")'))
        target = f"np.tanh({flat}[:, :1] / {40 if program.ids else 2})"
        program.data.append(f'y = {target}.astype("float32")')
        program.loss = f"keras.losses.{random.choice(('MeanSquaredError', 'MeanAbsoluteError', 'Huber'))}()"
        return
    if kind == "binary":
        program.data.append(f'y = ({flat}[:, :1] > {20 if program.ids else 0}).astype("float32")')
        program.layers.append(("logit", "keras.layers.Dense(1)"))
        program.layers.append(("head", 'keras.layers.Activation("sigmoid", dtype="float32")'))
        program.loss = "keras.losses.BinaryCrossentropy()"
        return
    limit = 10 if program.ids else 0.5
    program.data.append(f'y = np.digitize({flat}[:, 0], [{-limit if not program.ids else 5}, {limit}]).astype("int32")')
    if kind == "logits":
        program.layers.append(("head", 'keras.layers.Dense(3, dtype="float32")'))
        program.loss = "keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
    else:
        program.layers.append(("logits", "keras.layers.Dense(3)"))
        program.layers.append(("head", 'keras.layers.Activation("softmax", dtype="float32")'))
        program.loss = "keras.losses.SparseCategoricalCrossentropy()"


def regression_head(program: Program, target: str = "", rate: str = "1e-3") -> None:
    """One number a row, by mean squared error and a small learning rate."""
    program.data.append(features(program))
    flat = "x.reshape(len(x), -1).astype('float32')"
    program.data.append(target or f'y = np.tanh({flat}[:, :1]).astype("float32")')
    program.layers.append(("head", 'keras.layers.Dense(1, dtype="float32", name="head")'))
    program.optimizer = f"keras.optimizers.SGD({rate})"


def optimizer(program: Program) -> None:
    program.optimizer = program.random.choice(
        (
            "keras.optimizers.SGD(0.01)",
            "keras.optimizers.SGD(0.01, momentum=0.9)",
            "keras.optimizers.Adam(1e-3)",
            "keras.optimizers.Adam(1e-3, global_clipnorm=1.0)",
            "keras.optimizers.RMSprop(1e-3)",
            "keras.optimizers.AdamW(1e-3, weight_decay=1e-4)",
            "keras.optimizers.Nadam(1e-3)",
            "keras.optimizers.Adagrad(0.01)",
        )
    )
