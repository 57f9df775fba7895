"""Advice in the names of the file that it is about: tf.cast, tensorflow.cast or keras.ops.cast."""

from __future__ import annotations

import pytest
from judging import KERASES, facts_of

from mpdoctor.facts.location import Location
from mpdoctor.finding import Finding
from mpdoctor.judging.spelled_advice import spelled
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


@pytest.mark.parametrize(
    ("place", "keras", "told"),
    [
        (Location("fixture.py", 1), "3", 'ops.cast(y_pred, "float32")'),
        (Location("fixture.py", 1), "tf_keras", "tf.cast(y_pred, tf.float32)"),  # which has no ops
        (Location("another.py", 1), "3", "tf.cast(y_pred, tf.float32)"),
        (None, "3", "tf.cast(y_pred, tf.float32)"),
    ],
)
def test_advice_of_a_run_names_what_the_file_of_its_line_imports(place: Location | None, keras: str, told: str) -> None:
    sources = {"fixture.py": facts_of("import keras\nfrom keras import ops\n", "3")}
    said = spelled(Finding("It raises.", "Cast it: `tf.cast(y_pred, tf.float32)`.", place), sources, KERASES[keras])
    assert isinstance(said, Finding) and said.help == f"Cast it: `{told}`."


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("self.optimizer.apply_gradients(zip(grads, self.weights))", "`x = self.optimizer.scale_loss(loss)`."),
        ("agent.opts[name].apply(grads, weights)", "`x = agent.opts[name].scale_loss(loss)`."),
        ("optimizer.apply_gradients(zip(grads, weights))", "`x = optimizer.scale_loss(loss)`."),
        ("a.apply(grads, one), b.apply(grads, two)", "`x = optimizer.scale_loss(loss)`."),
        ("step(grads)", "`x = optimizer.scale_loss(loss)`."),
    ],
)
def test_advice_of_a_run_names_the_optimizer_as_its_line_does(line: str, told: str) -> None:
    sources = {"fixture.py": facts_of(f"import keras\n{line}\n", "3")}
    finding = Finding("It was never scaled.", "`x = optimizer.scale_loss(loss)`.", Location("fixture.py", 2))
    said = spelled(finding, sources, KERASES["3"])
    assert isinstance(said, Finding) and said.help == told


def test_what_a_run_says_of_an_attribute_names_the_optimizer_that_has_it() -> None:
    sources = {"fixture.py": facts_of("import keras\nself.model.optimizer.momentum = 0.9\n", "3")}
    finding = Finding("It is lost.", "Set `optimizer.inner_optimizer.momentum = 0.9`.", Location("fixture.py", 2))
    said = spelled(finding, sources, KERASES["3"])
    assert isinstance(said, Finding) and said.help == "Set `self.model.optimizer.inner_optimizer.momentum = 0.9`."
