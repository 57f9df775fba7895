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
