"""The dtypes of what layers and functions give in a `call()`: a float32 tensor is added to each (MP202).

Each of RESULTS was float16 in TensorFlow 2.10, 2.15, tf_keras 2.21 and Keras 3.15, where that has it. Of FLOAT32 each
is float32 in TensorFlow 2.15.
"""

from __future__ import annotations

import pytest
from described import PRELUDE
from judging import facts_of, findings_in

pytestmark = pytest.mark.fast

CLASSES = """
import functools
from tensorflow.keras import activations, backend as K
mp.set_global_policy('mixed_float16')

class Wrap(layers.Wrapper):
    def call(self, x):
        return self.layer(x)

class Inherits(layers.BatchNormalization):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)

class InheritsFloat32(layers.BatchNormalization):
    def __init__(self, **kwargs):
        super().__init__(dtype='float32', **kwargs)

class Pair(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.d = layers.Dense(4)

    def call(self, x):
        return self.d(x), tf.cast(self.d(x), tf.float32)

class Named(layers.Layer):
    def __init__(self):
        super().__init__()
        self.d = layers.Dense(4)

    def call(self, x):
        return {'mean': self.d(x), 'loss': tf.cast(x, tf.float32), 'n': 3}

class Residual(layers.Layer):
    def __init__(self):
        super().__init__()
        self.d = layers.Dense(4)

    def call(self, x):
        return layers.add([self.d(x), x])

def norm(kind, axis=-1):
    if kind == 'bn':
        return Inherits(axis=axis)
    elif kind == 'layer':
        layer = layers.LayerNormalization
    else:
        layer = layers.BatchNormalization
    return layer(axis=axis)
"""
LAYER = """
class L(layers.Layer):
    def __init__(self, flag=False, kind='relu', activation=None, **kwargs):
        super().__init__(**kwargs)
        {made}

    def call(self, x, ids=None, *more, training=False, **given):
        {called}
        return y + tf.random.normal(tf.shape(y))
"""
RESULTS = [
    # made in __init__, computed in call()
    ("self.act = activations.get(activation)", "y = self.act(x)"),
    ("self.act = tf.keras.activations.get(kind); self.d = layers.Dense(4)", "y = self.act(self.d(x))"),
    ("self.d = layers.Lambda(lambda t: t * 2)", "y = self.d(x)"),
    ("self.d = layers.UpSampling2D()", "y = self.d(x)"),
    ("self.d = layers.RNN(layers.LSTMCell(4))", "y = self.d(x)"),
    ("self.d = layers.RNN([layers.GRUCell(4), layers.GRUCell(3)])", "y = self.d(x)"),
    ("self.d = Wrap(layers.Dense(4))", "y = self.d(x)"),
    ("self.d = Wrap(layers.Dense(4)) if flag else layers.Dense(4)", "y = self.d(x)"),
    ("self.d = Inherits()", "y = self.d(x)"),
    ("self.d = Inherits(momentum=0.9)", "y = self.d(x)"),
    ("self.d = norm(kind)", "y = self.d(x)"),
    ("self.d = Residual()", "y = self.d(x)"),
    ("self.d = [Residual() for _ in range(2)]", "y = x\n        for d in self.d:\n            y = d(y)"),
    ("self.d = Pair()", "y, z = self.d(x)"),
    ("self.d = Pair()", "y = self.d(x)[0]"),
    ("self.d = Named()", "y = self.d(x)['mean']"),
    ("self.d = layers.Dense(4)", "y = layers.concatenate([self.d(x), x])"),
    ("self.d = layers.Dense(4)", "y = layers.multiply([self.d(x), x])"),
    ("self.d = layers.Dense(4)", "y = tf.cond(training, lambda: self.d(x), lambda: self.d(x) * 2)"),
    ("self.d = layers.Dense(4, **kwargs)", "y = self.d(x)"),
    ("self.d = Inherits(**kwargs)", "y = self.d(x)"),
    ("self.d = {'a': layers.Dense, 'b': layers.EinsumDense}[f'{kind}'](4, **kwargs)", "y = self.d(x)"),
    ("self.d = layers.Dense(4)", "y = self.d(more[0])"),
    ("self.d = layers.Dense(4)", "y = self.d(given['z'])"),
    ("self.d = layers.Dense(4)", "y = self.d(ids)"),
    ("self.d = layers.Dense(4) if flag else None", "y = x\n        if self.d is not None:\n            y = self.d(y)"),
    ("for i in range(2):\n            setattr(self, f'd{i}', layers.Dense(4))", "y = self.d0(x)"),
    (
        "for i in range(2):\n            setattr(self, f'd{i}', layers.Dense(4))",
        "y = x\n        for i in range(2):\n            y = getattr(self, f'd{i}')(y)",
    ),
    ("pass", "y = tf.boolean_mask(x, ids == 3)"),
    ("self.w = self.add_weight(shape=(10, 4))", "y = tf.matmul(tf.one_hot(ids, 10, dtype=x.dtype), self.w)"),
    ("pass", "y = K.in_train_phase(x * 2, x, training=training)"),
    ("pass", "y = K.switch(x > 0, x, x * 2)"),
    ("pass", "y = K.permute_dimensions(x, (0, 2, 1))"),
    ("pass", "y = K.repeat_elements(x, 2, 1)"),
]
FLOAT32 = [
    ("self.act = activations.get(activation)", "y = self.act(tf.cast(x, tf.float32))"),
    ("self.d = layers.Lambda(lambda t: tf.cast(t, tf.float32) * 2)", "y = self.d(x)"),
    ("self.d = layers.Lambda(lambda t: t * 2, dtype='float32')", "y = self.d(x)"),
    ("self.d = layers.UpSampling2D(interpolation='bilinear')", "y = self.d(x)"),
    ("self.d = layers.RNN(layers.LSTMCell(4, dtype='float32'), dtype='float32')", "y = self.d(x)"),
    ("self.d = Wrap(layers.Dense(4, dtype='float32'), dtype='float32')", "y = self.d(x)"),
    ("self.d = Inherits(dtype='float32')", "y = self.d(x)"),
    ("self.d = InheritsFloat32()", "y = self.d(x)"),
    ("self.d = Pair()", "z, y = self.d(x)"),
    ("self.d = Named()", "y = self.d(x)['loss']"),
    ("kwargs['dtype'] = 'float32'; self.d = layers.Dense(4, **kwargs)", "y = self.d(x)"),
    ("kwargs.setdefault('dtype', 'float32'); self.d = layers.Dense(4, **kwargs)", "y = self.d(x)"),
    ("self.d = layers.Dense(4, **dict(kwargs, dtype='float32'))", "y = self.d(x)"),
    ("self.d = layers.Dense(4, dtype='float32')", "y = self.d(more[0])"),
    ("self.d = layers.Dense(4, dtype='float32')", "y = tf.cond(training, lambda: self.d(x), lambda: self.d(x) * 2)"),
    ("self.d = layers.Dense(4)", "y = layers.add([self.d(x), x], dtype='float32')"),
    ("self.d = layers.Dense(4, dtype='float32') if flag else None", "y = self.d(x)"),
    ("for i in range(2):\n            setattr(self, f'd{i}', layers.Dense(4, dtype='float32'))", "y = self.d0(x)"),
    ("pass", "y = tf.one_hot(ids, 10, dtype=tf.float32)"),
    ("pass", "y = K.switch(tf.reduce_any(ids > 1), tf.zeros((2,)), tf.ones((2,)))"),
]


def mismatches(made: str, called: str) -> list[str]:
    layer = LAYER.replace("{made}", made).replace("{called}", called)
    findings = findings_in(facts_of(PRELUDE + CLASSES + layer, "2.15"))
    return [finding.code for finding in findings if finding.code == "MP202"]


@pytest.mark.parametrize(("made", "called"), RESULTS)
def test_a_result_in_16_bits_meets_float32(made: str, called: str) -> None:
    assert mismatches(made, called) == ["MP202"]


@pytest.mark.parametrize(
    ("made", "called"),
    [*FLOAT32, *((made, called + "\n        y = tf.cast(y, 'float32')") for made, called in RESULTS)],
)
def test_a_result_in_float32_meets_none(made: str, called: str) -> None:
    assert mismatches(made, called) == []
