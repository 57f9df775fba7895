"""An optimizer of the program's own that hands its gradients to others is one training, beside a real TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import needs_keras
from live import examined, script_from_text

PARTS = """\
class Parts(K.optimizers.Optimizer):
    # as MultiOptimizer of TensorFlow Addons
    def __init__(self, *parts):
        super().__init__(**({"learning_rate": 0.01} if KERAS3 else {"name": "parts"}))
        self.parts = parts
        self._learning_rate = 0.01

    def build(self, variables):
        if KERAS3:
            super().build(variables)
            for optimizer, layers in self.parts:
                optimizer.build([weight for layer in layers for weight in layer.trainable_weights])

    def apply(self, gradients, trainable_variables):
        for optimizer, layers in self.parts:
            mine = [id(weight) for layer in layers for weight in layer.weights]
            pairs = [(g, v) for g, v in zip(gradients, trainable_variables) if id(v) in mine]
            optimizer.apply_gradients(pairs)

    def apply_gradients(self, pairs, **more):
        pairs = list(pairs)
        self.apply([g for g, _ in pairs], [v for _, v in pairs])

    def get_config(self):
        return {}


model = dense_model()
first, second = K.optimizers.Adam(0.001), K.optimizers.SGD(0.01)
"""
FIT = """\
model.compile(Parts((first, model.layers[:1]), (second, model.layers[1:])), "mse")
model.fit(x, y, batch_size=16, epochs=4, verbose=0)
"""
LOOP = """\
optimizer = {optimizer}
if KERAS3:
    optimizer.build(model.trainable_variables)

@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = scaled({by}, tf.reduce_mean(tf.square(y - model(x))))
    gradients = tape.gradient(loss, model.trainable_variables)
    if not KERAS3:
        gradients = {by}.get_unscaled_gradients(gradients)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

for batch in tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat(5):
    step(*batch)
"""
BOTH_PARTS = "Parts((first, model.layers[:1]), (second, model.layers[1:]))"
WITH_SCALES = "first, second = wrapped(first), wrapped(second)\n"
OF_KERAS = """\
model = dense_model()
parts = K.optimizers.OptimizerMap(K.optimizers.Adam(0.001), {".*/bias": K.optimizers.SGD(0.01)})
model.compile(K.optimizers.MultiOptimizer(parts), "mse")
model.fit(x, y, batch_size=16, epochs=4, verbose=0)
"""
TWO = """\
model = dense_model()
first, second = wrapped(K.optimizers.Adam(0.001)), wrapped(K.optimizers.SGD(0.01))
front, head = model.layers[0].trainable_variables, model.layers[1].trainable_variables

@tf.function
def step(x, y):
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(tf.square(y - model(x)))
        at_first, at_second = scaled(first, loss), scaled(second, loss)
    update(first, tape, at_first, front)
    update(second, tape, at_second, head)

for batch in tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat(5):
    step(*batch)
"""
WRAPPED = PARTS + LOOP.format(optimizer=f"wrapped({BOTH_PARTS})", by="optimizer")
OF_WRAPPERS = PARTS + WITH_SCALES + LOOP.format(optimizer=BOTH_PARTS, by="first")
DEFAULT = (("compiled", "tf_keras"), ("of-wrappers", "3"))  # in every run
# (id, Kerases, script, (the innermost optimizer's class, whether it has a loss scale) of each training)
TRAINED = [
    ("compiled", ("3", "tf_keras"), PARTS + FIT, [("Parts", True)]),
    ("in-a-loop", ("3", "tf_keras"), WRAPPED, [("Parts", True)]),
    ("of-keras", ("3",), OF_KERAS, [("MultiOptimizer", True)]),
    ("of-wrappers", ("3", "tf_keras"), OF_WRAPPERS, [("Adam", True), ("SGD", True)]),
    ("two-that-know-nothing-of-each-other", ("3", "tf_keras"), TWO, [("Adam", True), ("SGD", True)]),
]


@pytest.mark.parametrize(
    ("keras", "script", "trained"),
    [
        pytest.param(
            keras, script, trained, id=f"{name}-{keras}",
            marks=[needs_keras(keras), *([] if (name, keras) in DEFAULT else [pytest.mark.slow])],
        )
        for name, kerases, script, trained in TRAINED
        for keras in kerases
    ],
)  # fmt: skip
def test_what_hands_gradients_on_is_one_training_with_those_that_it_hands_them_to(
    keras: str, script: str, trained: list[tuple[str, bool]], tmp_path: Path
) -> None:
    facts = examined(script_from_text(tmp_path / "train.py", script), keras, steps=12)
    told = [(training.model.optimizer[-1].class_name, training.dynamic is True) for training in facts.trainings]
    assert told == trained
    by_another = [
        training.scale_dependence.scaled_by_another for training in facts.trainings if training.scale_dependence
    ]
    assert by_another == ([False, True] if script is OF_WRAPPERS else [False] * len(trained))
    assert [len(training.steps) for training in facts.trainings] == [12] * len(trained)
