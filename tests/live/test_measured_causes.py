"""What the examiner measures beside a real TensorFlow to tell causes by: a script's own number of steps, its own fixed
scale, what holds weights that never move, weights that run away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checking import needs_keras
from live import examined, script_from_text

from mpdoctor.facts.training import TrainingFacts

BOTH = ("3", "tf_keras")
FIT = """\
    model = dense_model()
    model.compile({optimizer}, {loss})
    model.fit({data}, epochs={epochs}, verbose=0)
    """
FIXED = "K.mixed_precision.LossScaleOptimizer(K.optimizers.SGD(0.01), dynamic=False, initial_scale=24.0)"
FLUSHED = "K.mixed_precision.LossScaleOptimizer(K.optimizers.SGD(0.01), initial_scale=1.0)"
BATCHES = "tf.data.Dataset.from_tensor_slices((x, y)).batch(16)"
EAGER = """\
    model = dense_model()
    optimizer = {optimizer}
    for step in range({steps}):
        with tf.GradientTape() as tape:
            loss = scaled(optimizer, tf.reduce_mean(tf.square(y - model(x))))
        update(optimizer, tape, loss, model.trainable_variables)
    """
DEAD = """\
    dead = L.Dense(4, activation="relu", kernel_initializer=K.initializers.Constant(-1.0), name="dead")
    model = K.Sequential([L.Input((8,)), L.Dense(16, activation="relu"), dead, L.Dense(1, dtype="float32")])
    model.layers[-1].use_bias = False
    model = K.Sequential([*model.layers[:-1], L.Dense(1, use_bias=False, dtype="float32")])
    model.compile(K.optimizers.SGD(0.01), "mse")
    model.fit(np.abs(x) + 1, y, epochs=3, verbose=0)
    """


def fit(optimizer: str = "'sgd'", loss: str = "'mse'", data: str = "x, y, batch_size=16", epochs: int = 4) -> str:
    return FIT.format(optimizer=optimizer, loss=loss, data=data, epochs=epochs)


# (id, Kerases, script, steps to be trained, facts of the training)
OWN: list[tuple[str, tuple[str, ...], str, int, dict[str, Any]]] = [
    ("arrays", BOTH, fit(), 12, {"script_steps": 24}),
    ("later-epochs", ("3",), fit(data="x, y, batch_size=16, initial_epoch=1"), 12, {"script_steps": 18}),
    ("unknown-size", BOTH, fit(data=BATCHES + ".filter(lambda a, b: True)"), 12, {"script_steps": 24}),
    ("unknown-size-and-no-end", ("3",), fit(data=BATCHES + ".filter(lambda a, b: True)"), 5, {"script_steps": None}),
    (
        "a-loop-that-ends",
        ("3",),
        EAGER.format(optimizer="wrapped(K.optimizers.SGD(0.01))", steps=13),
        40,
        {"script_steps": 13},
    ),
    (
        "a-loop-that-ends-after-a-trial",
        ("tf_keras",),
        EAGER.format(optimizer=FIXED, steps=13),
        40,
        {"script_steps": 13, "initial_scale": 24.0},
    ),
    ("a-fixed-scale", ("tf_keras",), fit(FIXED), 12, {"script_steps": 24, "initial_scale": 24.0}),
]
# (id, script, facts of what holds the weights)
STILL: list[tuple[str, str, dict[str, Any]]] = [
    ("a-rate-of-0", fit("K.optimizers.SGD(0.0)"), {"learning_rate": 0.0, "factor": 1.0}),
    ("dead-relus", DEAD, {"gradient": 0.0, "factor": None, "layer": "dead", "puts_out_zeros": True}),
    (
        "a-constant-loss",
        fit(loss="lambda t, p: tf.reduce_mean(t) + 0.0 * tf.reduce_mean(p)"),
        {"gradient": 0.0, "factor": None, "reaches_output": False},
    ),
    (
        "a-beta-2-that-is-1-in-bfloat16",
        """\
    model = K.Sequential([L.Input((8,)), L.Dense(1, dtype="bfloat16"), L.Activation("linear", dtype="float32")])
    model.compile("adam", "mse")
    model.fit(x, y, epochs=3, verbose=0)
    """,
        {"factor": 1.0, "dtype": "bfloat16", "survives_rounding": True},
    ),
    (
        "flushed",
        fit(FLUSHED, "lambda t, p: 1e-9 * tf.reduce_mean(tf.square(t - tf.cast(tf.cast(p, 'float16'), 'float32')))"),
        {"gradient": 0.0, "factor": 2.0**16},
    ),
]


def trained(tmp_path: Path, keras: str, text: str, steps: int) -> TrainingFacts:
    (training,) = examined(script_from_text(tmp_path / "script.py", text), keras, steps=steps).trainings
    return training


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("keras", "text", "steps", "expected"),
    [
        pytest.param(keras, text, steps, expected, id=f"{name}-{keras}", marks=needs_keras(keras))
        for name, kerases, text, steps, expected in OWN
        for keras in kerases
    ],
)
def test_numbers_are_the_scripts_own(
    tmp_path: Path, keras: str, text: str, steps: int, expected: dict[str, Any]
) -> None:
    training = trained(tmp_path, keras, text, steps)
    assert {name: getattr(training, name) for name in expected} == expected


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in BOTH])
@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in STILL], ids=[row[0] for row in STILL])
def test_what_holds_the_weights_is_measured(tmp_path: Path, keras: str, text: str, expected: dict[str, Any]) -> None:
    seen = trained(tmp_path, keras, text, 12).standstill
    assert seen is not None
    assert {name: getattr(seen, name) for name in expected} == expected
    assert seen.overflow is None


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in BOTH])
def test_a_sum_of_the_loss_that_is_divided_by_and_is_inf_holds_the_weights(tmp_path: Path, keras: str) -> None:
    share = "1 - tf.reduce_mean(tf.cast(h / tf.reduce_sum(h + 9000.0), 'float32'))"
    text = fit(loss=f"lambda t, p: (lambda h: {share})(tf.cast(p, 'float16'))")
    seen = trained(tmp_path, keras, text, 12).standstill
    assert seen is not None and seen.overflow is not None
    assert (seen.reaches_output, seen.overflow.name, seen.overflow.where) == (False, "Sum", "loss")


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in BOTH])
@pytest.mark.parametrize(("rate", "diverges"), [(30.0, True), (0.05, False)])
def test_weights_that_run_away_are_seen(tmp_path: Path, keras: str, rate: float, diverges: bool) -> None:
    training = trained(tmp_path, keras, fit(f"K.optimizers.SGD({rate})"), 40)
    assert training.diverges is diverges, training.growth
