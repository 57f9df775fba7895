"""Models of many kinds, each trained one batch that moves nothing, and what an independent calculation says of it.

`fidelity_models.py NUMBERS.json [NAME ...]` is the program that `python -m benchmarks.fidelity` lets mpdoctor examine:
all models, or those named. For each a second one is built anew under the float32 policy and given the same weights;
plain tapes give the gradients of both.
"""

import json
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

K, L = tf.keras, tf.keras.layers
mixed = K.mixed_precision
POLICIES = ("float32", "mixed_float16")
SCALES = (2.0**15, 1.0, 2.0**6)


def head(h):
    return L.Dense(3, dtype="float32", name="head")(h)


def functional(shape, body):
    def build():
        given = K.Input(shape)
        return K.Model(given, head(body(given)))

    return shape, build


def dense(width, activation="relu", count=1):
    def body(h):
        for _ in range(count):
            h = L.Dense(width, activation=activation)(h)
        return h

    return body


def convolved(norm, pool=None, separable=False):
    def body(h):
        for _ in range(2):
            h = (L.SeparableConv2D if separable else L.Conv2D)(8, 3, padding="same", activation="relu")(h)
            h = L.BatchNormalization()(h) if norm else h
            h = pool()(h) if pool else h
        return L.GlobalAveragePooling2D()(h)

    return body


def residual(h):
    h = L.Conv2D(6, 3, padding="same")(h)
    inner = L.Conv2D(6, 3, padding="same", activation="relu")(L.BatchNormalization()(h))
    return L.GlobalAveragePooling2D()(L.Add()([h, inner]))


def attention(h):
    return L.GlobalAveragePooling1D()(L.LayerNormalization()(L.Add()([h, L.MultiHeadAttention(2, 4)(h, h)])))


def recurrent(layer):
    return lambda h: layer(h)


class Own(K.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [L.Dense(12, activation="tanh"), L.BatchNormalization(), L.Dense(12, activation="relu")]
        self.head = L.Dense(3, dtype="float32")

    def call(self, x, training=False):
        for block in self.blocks:
            x = block(x, training=training) if isinstance(block, L.BatchNormalization) else block(x)
        return self.head(x * 2.0)


IMAGE, SERIES = (12, 12, 3), (7, 6)
MODELS = {
    "dense relu": functional((8,), dense(32)),
    "dense tanh, deep": functional((8,), dense(24, "tanh", 5)),
    "dense gelu": functional((8,), dense(24, tf.nn.gelu, 2)),
    "convolutions": functional(IMAGE, convolved(norm=False)),
    "convolutions, BatchNormalization": functional(IMAGE, convolved(norm=True)),
    "convolutions, MaxPooling": functional(IMAGE, convolved(norm=True, pool=L.MaxPooling2D)),
    "separable convolutions": functional(IMAGE, convolved(norm=True, separable=True)),
    "residual": functional(IMAGE, residual),
    "Conv1D": functional(SERIES, lambda h: L.GlobalMaxPooling1D()(L.Conv1D(8, 3, activation="relu")(h))),
    "LSTM": functional(SERIES, recurrent(lambda h: L.LSTM(10)(h))),
    "GRU, Bidirectional": functional(SERIES, recurrent(lambda h: L.Bidirectional(L.GRU(6))(h))),
    "SimpleRNN": functional(SERIES, recurrent(lambda h: L.SimpleRNN(8)(h))),
    "attention": functional((5, 8), attention),
    "subclassed": ((8,), Own),
}


def gradients(model, x, y, loss, scale):
    """As arrays, unscaled."""
    with tf.GradientTape() as tape:
        scaled = scale * loss(y, model(x, training=True))
    return [
        np.array(tf.convert_to_tensor(g)) / np.float32(scale) for g in tape.gradient(scaled, model.trainable_variables)
    ]


def told(half, single):
    """(flushed, cosine) of each variable, and the cosine of all."""
    pairs = list(zip(half, single, strict=True))
    flushed = [float(((a == 0) & (b != 0)).sum() / max((b != 0).sum(), 1)) for a, b in pairs]
    whole = cosine(np.concatenate([g.ravel() for g in half]), np.concatenate([g.ravel() for g in single]))
    return {"flushed": flushed, "cosine": [cosine(a, b) for a, b in pairs], "fidelity": whole}


def cosine(a, b):
    a, b = a.ravel().astype("float64"), b.ravel().astype("float64")
    lengths = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / lengths if lengths else None


def main(numbers, *names):
    expected = {}
    for place, (name, (shape, build)) in enumerate(MODELS.items()):
        if names and name not in names:
            continue
        tf.random.set_seed(place + 1)
        x = np.random.RandomState(place).rand(16, *shape).astype("float32")
        y = np.random.RandomState(place + 1).randint(0, 3, 16)
        scale, built = SCALES[place % len(SCALES)], []
        for policy in POLICIES:
            mixed.set_global_policy(policy)
            built.append(build())
            built[-1](x)
        single, half = built
        single.set_weights(half.get_weights())
        entropy = K.losses.SparseCategoricalCrossentropy(from_logits=True)

        def loss(labels, outputs, entropy=entropy):
            return 1e-3 * entropy(labels, outputs)

        expected[name] = {
            "scale": scale,
            **told(gradients(half, x, y, loss, scale), gradients(single, x, y, loss, 1.0)),
        }
        Path(numbers).write_text(json.dumps({"expected": expected, "models": list(MODELS)}))
        # a learning rate of 0: the weights stay as they are; in another order of the samples sums of float16 cancel
        # to 0 elsewhere
        half.compile(mixed.LossScaleOptimizer(K.optimizers.SGD(0.0), initial_scale=scale), loss)
        half.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
