"""Functions of the Keras backend and of TensorFlow that meet a 16-bit and a float32 tensor in a `call()` (MP202), or
that are told float32 and do not cast (MP214).

Each of RAISING raised, and each of FINE ran, in TensorFlow 2.4 and 2.15, with tf_keras 2.21 and with Keras 3.15 (where
`tf.keras.backend` has them), eagerly and in a graph; those of NUMBER_FIRST in a graph.
"""

from __future__ import annotations

import pytest
from described import PRELUDE
from judging import facts_of, findings_in

from mpdoctor.fixes.texts import edited as with_edits

pytestmark = pytest.mark.fast

LAYER = """
import numpy as np
from tensorflow.keras import backend as K
mp.set_global_policy('mixed_float16')

class Meets(layers.Layer):
    def call(self, x):
        f = tf.ones((4, 4))
        return {}
"""
RAISING = (
    "K.dot(x, f)",
    "K.dot(f, x)",
    "K.dot(x, K.constant(np.eye(4)))",
    "K.batch_dot(x, f)",
    "K.pow(x, f)",
    "K.maximum(x, f)",
    "K.minimum(f, x)",
    "K.equal(x, f)",
    "K.not_equal(x, f)",
    "K.greater(x, f)",
    "K.greater_equal(f, x)",
    "K.less(x, f)",
    "K.less_equal(x, f)",
    "K.bias_add(x, K.zeros((4,)))",
    "K.conv1d(x, tf.ones((2, 4, 4)))",
    "K.conv2d(x, tf.ones((2, 2, 4, 4)))",
    "K.conv3d(x, tf.ones((2, 2, 2, 4, 4)))",
    "K.depthwise_conv2d(x, tf.ones((2, 2, 4, 1)))",
    "K.conv2d_transpose(x, tf.ones((2, 2, 4, 4)), (2, 8, 8, 4))",
    "K.separable_conv2d(x, tf.ones((2, 2, 4, 1)), tf.ones((1, 1, 4, 4)))",
    "K.clip(x, K.constant(0.1), 1.0)",
    "K.concatenate([x, f])",
    "K.concatenate([f, x], axis=-1)",
    "K.stack([x, f])",
    "K.binary_crossentropy(f, x)",
    "K.categorical_crossentropy(f, x)",
    "tf.math.accumulate_n([x, f])",
    "tf.nn.dropout(x, tf.constant(0.5))",
    "tf.nn.dropout(x, rate=tf.constant(0.5))",
    "tf.nn.leaky_relu(x, alpha=tf.constant(0.2))",
    "tf.math.l2_normalize(x, axis=-1, epsilon=tf.constant(1e-3))",
    "tf.math.l2_normalize(x, epsilon=tf.constant(1e-3))",
    "tf.linspace(tf.reduce_max(x), tf.constant(1.0), 4)",
    "tf.linspace(0.0, tf.reduce_max(x), 4)",
    "tf.debugging.assert_near(x, f)",
    "tf.debugging.assert_less(x, tf.constant(3.0))",
    "tf.dynamic_stitch([[0], [1]], [x[:1], f[:1]])",
    "tf.reduce_mean([x, f])",
    "tf.reduce_logsumexp([x, f], axis=0)",
    "tf.convert_to_tensor([x, f])",
    "sum([x, f])",
    "tf.searchsorted(x, f)",
    "tf.sparse.sparse_dense_matmul(tf.sparse.from_dense(f), x)",
    "tf.sparse.add(tf.sparse.from_dense(f), tf.sparse.from_dense(x))",
)
NUMBER_FIRST = (
    "K.pow(2.0, x)",
    "K.maximum(0.5, x)",
    "K.greater(0.5, x)",
    "K.equal([0.5, 0.5, 0.5, 0.5], x)",
    "K.less(np.ones((4, 4), 'float32'), x)",
)
DRAWING = (
    ("tf.random.normal(tf.shape(x), mean=x)", "tf.random.normal(tf.shape(x), mean=x, dtype=x.dtype)"),
    ("tf.random.normal(tf.shape(x), x, x, tf.float32)", "tf.random.normal(tf.shape(x), x, x, x.dtype)"),
    ("tf.random.normal((4,), stddev=tf.exp(x))", "tf.random.normal((4,), stddev=tf.exp(x), dtype=self.compute_dtype)"),
    ("tf.random.truncated_normal((4,), x)", "tf.random.truncated_normal((4,), x, dtype=x.dtype)"),
    ("tf.random.uniform((4,), maxval=x[0, 0])", "tf.random.uniform((4,), maxval=x[0, 0], dtype=self.compute_dtype)"),
    ("tf.random.stateless_normal((4,), (1, 2), x)", "tf.random.stateless_normal((4,), (1, 2), x, dtype=x.dtype)"),
    (
        "tf.random.stateless_uniform((4,), (1, 2), 0.0, x)",
        "tf.random.stateless_uniform((4,), (1, 2), 0.0, x, dtype=x.dtype)",
    ),
    ("K.random_normal((4,), mean=x)", "K.random_normal((4,), mean=x, dtype=x.dtype)"),
    ("K.random_uniform((4,), maxval=x)", "K.random_uniform((4,), maxval=x, dtype=x.dtype)"),
    ("K.truncated_normal((4,), stddev=x)", "K.truncated_normal((4,), stddev=x, dtype=x.dtype)"),
)
CONVERTING = ("tf.constant(x, tf.float32)", "tf.convert_to_tensor(x, dtype='float32')")
FINE = (
    "tf.random.normal(tf.shape(x), 0.0, 1.0, x.dtype) + x",
    "tf.random.normal(tf.shape(x), mean=x, dtype=x.dtype)",
    "tf.random.normal(tf.shape(x), mean=f)",
    "tf.random.uniform(tf.shape(x), maxval=10)",
    "tf.convert_to_tensor(f, tf.float32)",
    "tf.convert_to_tensor(x)",
    "tf.convert_to_tensor(x, dtype=x.dtype)",
    "tf.cast(x, tf.float32) if tf.is_tensor(x) else tf.convert_to_tensor(x, tf.float32)",
    "tf.convert_to_tensor(x, dtype_hint=tf.float32)",
    "tf.nn.dropout(x, rate=0.5)",
    "tf.nn.leaky_relu(x, alpha=0.2)",
    "tf.linspace(tf.reduce_max(x), 1.0, 4)",
    "tf.reduce_mean([x, x])",
    "sum([x, x])",
    "sum([f, 1.0])",
    "K.dot(x, K.cast(f, x.dtype))",
    "K.dot(x, tf.ones((4, 4), x.dtype))",
    "K.pow(x, 2.0)",
    "K.maximum(x, 0.5)",
    "K.greater(x, np.ones((4, 4), 'float32'))",
    "K.clip(x, 0.1, 1.0)",
    "K.clip(f, 0.1, 1.0)",
    "K.concatenate([x, np.ones((4, 4), 'float32')])",
    "K.stack([x, x])",
    "K.concatenate([f, K.cast(x, 'float32')])",
    "K.dot(f, f)",
    "K.in_train_phase(x, f, training=True)",
    "K.sparse_categorical_crossentropy(tf.constant([1, 0]), x)",
)


@pytest.mark.parametrize("keras", ["2.15", "3"])
@pytest.mark.parametrize("text", RAISING)
def test_two_dtypes_meet(text: str, keras: str) -> None:
    assert "MP202" in _codes(text, keras)


@pytest.mark.parametrize("keras", ["2.15", "3"])
@pytest.mark.parametrize("text", NUMBER_FIRST)
def test_a_number_before_the_tensor_is_float32_in_a_graph(text: str, keras: str) -> None:
    assert "MP202" in _codes(text, keras)


@pytest.mark.parametrize("keras", ["2.15", "3"])
@pytest.mark.parametrize("text", FINE)
def test_one_dtype(text: str, keras: str) -> None:
    assert not {"MP202", "MP214"} & set(_codes(text, keras))


@pytest.mark.parametrize("keras", ["2.15", "3"])
@pytest.mark.parametrize(("text", "edited"), DRAWING)
def test_random_numbers_are_drawn_in_float32(text: str, edited: str, keras: str) -> None:
    source = PRELUDE + LAYER.replace("{}", text)
    told = [finding for finding in findings_in(facts_of(source, keras)) if finding.code == "MP214"]
    assert len(told) == 1
    assert told[0].fix is not None
    assert with_edits(source, told[0].fix.edits) == PRELUDE + LAYER.replace("{}", edited)


@pytest.mark.parametrize("keras", ["2.15", "3"])
@pytest.mark.parametrize("text", CONVERTING)
def test_making_a_tensor_casts_nothing(text: str, keras: str) -> None:
    assert "MP214" in _codes(text, keras)


def _codes(text: str, keras: str) -> list[str]:
    return [finding.code for finding in findings_in(facts_of(PRELUDE + LAYER.replace("{}", text), keras))]
