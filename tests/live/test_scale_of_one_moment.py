"""Losses that a program multiplies by a loss scale it has read, each time or once, beside a real TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import needs_keras
from live import examined, script_from_text

from mpdoctor.semantics.live.fixed_scales import fixed_factor

LOOP = """\
model = dense_model()
optimizer = wrapped(K.optimizers.SGD(0.01))
variables = model.trainable_variables
if KERAS3:
    optimizer.build(variables)

def scale_now():
    return float(optimizer.dynamic_scale if KERAS3 else optimizer.loss_scale)

once = scale_now()

@tf.function
def step(x, y, scale):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(y - model(x))) * {times}
    gradients = tape.gradient(loss, variables)
    {apply}

for batch in tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat(5):
    step(*batch, tf.constant({given}))
"""
APPLY = "optimizer.apply_gradients(zip(gradients, variables))"
UNSCALED = "optimizer.apply_gradients(zip(optimizer.get_unscaled_gradients(gradients), variables))"
DIVIDED = "optimizer.apply_gradients([(gradient / once, v) for gradient, v in zip(gradients, variables)])"
# (id, by what the loss is multiplied, how gradients are applied, Keras, exponent, the constant in the scale's place)
READ = [
    ("each-time", "scale", APPLY, "3", None, None),
    ("each-time", "scale", UNSCALED, "tf_keras", None, None),
    ("in-the-step", "optimizer.dynamic_scale", APPLY, "3", 0.0, None),
    ("once", "once", APPLY, "3", -1.0, 32768.0),
    ("once", "once", UNSCALED, "tf_keras", -1.0, 32768.0),
    ("once-and-divided", "once", DIVIDED, "tf_keras", 0.0, 32768.0),
    ("never", "1.0", APPLY, "3", -1.0, None),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "apply", "keras", "exponent", "constant"),
    [pytest.param(*row, id=f"{name}-{row[2]}", marks=needs_keras(row[2])) for name, *row in READ],
)
def test_a_loss_scale_that_was_read_is_told_from_none(
    times: str, apply: str, keras: str, exponent: float | None, constant: float | None, tmp_path: Path
) -> None:
    script = script_from_text(
        tmp_path / "train.py", LOOP.format(times=times, apply=apply, given="scale_now()" if times == "scale" else "1.0")
    )
    training = examined(script, keras, steps=8).trainings[0]
    seen = training.scale_dependence
    assert (None if seen is None else round(seen.median, 1)) == exponent
    assert fixed_factor(training) == constant
    assert any("is handed" in reason for _, reason in training.not_looked) is (exponent is None)


TWO_MODELS = """\
models = [dense_model(), dense_model()]
optimizers = [wrapped(K.optimizers.SGD(0.01)) for _ in models]
for model, optimizer in zip(models, optimizers):
    optimizer.build(model.trainable_variables)

@tf.function
def step(x, y):
    with tf.GradientTape(persistent=True) as tape:
        losses = [tf.reduce_mean(tf.square(y - model(x))) for model in models]
    for loss, model, optimizer in zip(losses, models, optimizers):
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

for batch in tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat(5):
    step(*batch)
"""


@pytest.mark.slow
@needs_keras("3")
def test_the_growth_of_another_optimizers_scale_is_no_factor_of_the_loss(tmp_path: Path) -> None:
    trainings = examined(script_from_text(tmp_path / "train.py", TWO_MODELS), "3", steps=8).trainings
    assert [fixed_factor(training) for training in trainings] == [None, None]
