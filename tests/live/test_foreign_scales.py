"""Gradients that keep the loss scale of another optimizer than the one that applies them, beside a real TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import needs_keras
from live import examined, script_from_text

TWO_IN_TURN = """\
model = dense_model()
front, head = model.layers[0].trainable_variables, model.layers[1].trainable_variables
first, second = K.optimizers.SGD(0.01), wrapped(K.optimizers.SGD(0.01))
if KERAS3:
    second.build(head)

@tf.function
def step(x, y):
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(tf.square(y - model(x)))
        at_first, at_second = {loss}, scaled(second, loss)
    gradients = tape.gradient(at_first, front)
    first.apply_gradients(zip({gradients}, front))
    update(second, tape, at_second, head)

for batch in tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat(5):
    step(*batch)
"""
SCALED, DIVIDED = "scaled(second, loss)", "[g / scale_of(second) for g in gradients]"
SCALE = """\
def scale_of(optimizer):
    return optimizer.dynamic_scale if KERAS3 else optimizer.loss_scale

"""
ADDED_UP = """\
model = dense_model()
base = K.optimizers.SGD(0.01)
optimizer = wrapped(base)
variables = model.trainable_variables
sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]

@tf.function
def add(x, y):
    with tf.GradientTape() as tape:
        loss = scaled(optimizer, tf.reduce_mean(tf.square(y - model(x))))
    for total, gradient in zip(sums, tape.gradient(loss, variables)):
        total.assign_add(gradient)

@tf.function
def apply():
    base.apply_gradients([(total / {divisor}, v) for total, v in zip(sums, variables)])
    for total in sums:
        total.assign(tf.zeros_like(total))

for number, batch in enumerate(tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat(10)):
    add(*batch)
    if number % 2:
        apply()
"""
# (id, script, Kerases, exponent of the first training, whether its gradients keep the scale, whether the wrapper is
# around its optimizer)
FOREIGN = [
    ("two", SCALE + TWO_IN_TURN.format(loss=SCALED, gradients="gradients"), ("3", "tf_keras"), 1.0, True, False),
    ("added-up", ADDED_UP.format(divisor="2"), ("3", "tf_keras"), 1.0, True, True),
    ("divided-by-hand", SCALE + TWO_IN_TURN.format(loss=SCALED, gradients=DIVIDED), ("3",), 0.0, False, False),
    ("not-scaled", SCALE + TWO_IN_TURN.format(loss="loss", gradients="gradients"), ("3",), None, False, False),
    ("divided-by-its-scale", ADDED_UP.format(divisor="optimizer.initial_scale"), ("3",), 0.0, False, True),
    ("divided-by-a-number", ADDED_UP.format(divisor="32768.0"), ("3",), 1.0, False, True),
]


@pytest.mark.parametrize(
    ("keras", "script", "exponent", "keeps", "is_around"),
    [
        pytest.param(
            keras, script, exponent, keeps, is_around, id=f"{name}-{keras}",
            marks=[needs_keras(keras), *([] if (name, keras) == ("two", "3") else [pytest.mark.slow])],
        )
        for name, script, kerases, exponent, keeps, is_around in FOREIGN
        for keras in kerases
    ],
)  # fmt: skip
def test_gradients_with_the_scale_of_another_optimizer_are_measured_at_two_scales(
    keras: str, script: str, exponent: float | None, keeps: bool, is_around: bool, tmp_path: Path
) -> None:
    first = examined(script_from_text(tmp_path / "train.py", script), keras, steps=10).trainings[0].scale_dependence
    assert (None if first is None else round(first.median, 1)) == exponent
    assert first is None or first.keeps_foreign_scale is keeps
    assert first is None or first.scaled_by_its_wrapper is is_around


EAGER = """\
model = dense_model()
base = K.optimizers.SGD(0.01)
optimizer = wrapped(base)
if KERAS3:
    optimizer.build(model.trainable_variables)
for x, y in tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat(5):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(y - model(x)))
        at_scale = scaled(optimizer, loss)
    gradients = tape.gradient(at_scale, model.trainable_variables)
    base.apply_gradients(zip(gradients, model.trainable_variables))
"""


@pytest.mark.parametrize(
    ("keras", "tried", "exponent"),
    [
        pytest.param("tf_keras", 0, None, marks=needs_keras("tf_keras")),
        pytest.param("3", 4, 1.0, marks=[needs_keras("3"), pytest.mark.slow]),
    ],
)
def test_an_eager_loop_whose_bare_optimizer_gets_gradients_of_another_scale_is_followed_to_its_end(
    keras: str, tried: int, exponent: float | None, tmp_path: Path
) -> None:
    training = examined(script_from_text(tmp_path / "train.py", EAGER), keras, steps=50).trainings[0]
    assert training.ended == "script"
    assert training.script_steps == len(training.steps) + tried
    first = training.scale_dependence
    assert (None if first is None else round(first.median, 1)) == exponent
