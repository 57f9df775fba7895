"""Functions of the Keras backend and of TensorFlow that meet a 16-bit and a float32 tensor in a `call()` (MP202).

Each of RAISING raised, and each of FINE ran, in TensorFlow 2.4 and 2.15, with tf_keras 2.21 and with Keras 3.15 (where
`tf.keras.backend` has them), eagerly and in a graph; those of NUMBER_FIRST in a graph.
"""

from __future__ import annotations

import pytest
from described import PRELUDE
from judging import facts_of, findings_in

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
FINE = (
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
    assert "MP202" not in _codes(text, keras)


def _codes(text: str, keras: str) -> list[str]:
    return [finding.code for finding in findings_in(facts_of(PRELUDE + LAYER.replace("{}", text), keras))]
