"""Advice in the names of the file that it is about: tf.cast, tensorflow.cast or keras.ops.cast."""

from __future__ import annotations

import pytest
from judging import facts_of

from mpdoctor.semantics.source.edits.names import advice_in_names_of

pytestmark = pytest.mark.fast

SUM = "Cast first: `tf.reduce_sum(tf.cast(x, tf.float32), …)`."
SPELLED = {
    "TensorFlow as most call it": ("import tensorflow as tf", "3", SUM),
    "both": ("import tensorflow as tf\nfrom keras import ops", "3", SUM),
    "another name": ("import tensorflow as flow", "3", "Cast first: `flow.reduce_sum(flow.cast(x, flow.float32), …)`."),
    "in full": ("import tensorflow", "2.15", SUM.replace("tf.", "tensorflow.")),
    "keras": ("import keras", "3", 'Cast first: `keras.ops.sum(keras.ops.cast(x, "float32"), …)`.'),
    "ops": ("import keras\nfrom keras import ops", "3", 'Cast first: `ops.sum(ops.cast(x, "float32"), …)`.'),
    "Keras 2, which has no ops": ("import keras", "2.10", SUM),
    "neither": ("import numpy", "3", SUM),
}
NO_COUNTERPART = "Compute it with `tf.signal.rfft(tf.cast(x, tf.float32))`."


@pytest.mark.parametrize(("imports", "keras", "told"), SPELLED.values(), ids=SPELLED)
def test_advice_names_what_the_file_imports(imports: str, keras: str, told: str) -> None:
    facts = facts_of(imports + "\n", keras)
    assert advice_in_names_of(facts, SUM) == told
    assert advice_in_names_of(facts, "Set `epsilon=1e-4`.") == "Set `epsilon=1e-4`."


def test_advice_stays_where_keras_ops_has_no_such_function() -> None:
    assert advice_in_names_of(facts_of("import keras\n", "3"), NO_COUNTERPART) == NO_COUNTERPART
