"""Where a moving average of ones comes to rest, beside what TensorFlow comes to; how its update may be written."""

from __future__ import annotations

import pytest
from judging import facts_of

from mpdoctor.semantics.source.numbers.moving_averages import end_for_ones, moving_averages

pytestmark = pytest.mark.fast

# After 20,000 updates by `decay * v + (1 - decay) * x` in TensorFlow 2.21, on a CPU.
MEASURED = [
    (0.9, "float16", 0.998046875),
    (0.95, "float16", 0.9951171875),
    (0.99, "float16", 0.97509765625),
    (0.995, "float16", 0.9501953125),
    (0.999, "float16", 0.75),
    (0.9999, "float16", 0.25),
    (0.9, "bfloat16", 0.984375),
    (0.95, "bfloat16", 0.96484375),
    (0.99, "bfloat16", 0.8359375),
    (0.995, "bfloat16", 0.50390625),
    (0.999, "bfloat16", 0.5),
    (0.9999, "bfloat16", 0.03125),
]


@pytest.mark.parametrize(("decay", "dtype", "end"), MEASURED)
def test_an_average_of_ones_ends_where_tensorflows_does(decay: float, dtype: str, end: float) -> None:
    assert end_for_ones(decay, dtype) == end


UPDATES: list[tuple[str, float | None]] = [
    ("v.assign(0.99 * v + 0.01 * x)", 0.99),
    ("v.assign(x * 0.01 + v * 0.99)", 0.99),
    ("v.assign(D * v + (1 - D) * x)", 0.75),
    ("v.assign(D * v + (1.0 - D) * x * y)", 0.75),
    ("v.assign(tf.cast(v, tf.float32) * D + (1 - D) * tf.cast(x, tf.float32))", 0.75),
    ("v.assign(v.read_value() * D + x * (1 - D))", 0.75),
    ("v.assign(v - 0.25 * (v - x))", 0.75),
    ("v.assign(v + 0.25 * (x - v))", 0.75),
    ("v.assign((x - v) * (1 - D) + v)", 0.75),
    ("v.assign_add((1 - D) * (x - v))", 0.75),
    ("v.assign_sub((v - x) * 0.25)", 0.75),
    ("v.assign_sub(tf.constant(0.25) * (v - x))", 0.75),
    ("v.assign(0.99 * v + 0.1 * x)", None),  # no average
    ("v.assign(0.99 * v + x)", None),
    ("v.assign(0.99 * w + 0.01 * x)", None),  # of another variable
    ("v.assign(E * v + (1 - E) * x)", None),  # nobody knows how much
    ("v.assign_add(0.01 * x)", None),
    ("v.assign_add((1 - D) * (v - x))", None),  # away from it
    ("v.assign_sub((1 - D) * (x - v))", None),
    ("v.assign(v - 0.25 * x)", None),
    ("v.assign(2.0 * v - 1.0 * x)", None),
    ("v.assign(x)", None),
]
PROGRAM = """import os
import tensorflow as tf
D, E = 0.75, float(os.environ["E"])
v, w = tf.Variable(0.0), tf.Variable(0.0)
"""


@pytest.mark.parametrize(("update", "decay"), UPDATES)
def test_the_ways_to_write_an_update(update: str, decay: float | None) -> None:
    facts = facts_of(f"{PROGRAM}def step(x, y):\n    {update}\n", "3")
    assert [average.decay for average in moving_averages(facts)] == ([] if decay is None else [pytest.approx(decay)])
