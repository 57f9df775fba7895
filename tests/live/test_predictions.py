"""Programs that only predict or evaluate: their calls are examined, and float16 is blamed only for its own overflows.

One script a Keras: each of its models is one case.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from checking import check, needs_keras
from live import examined, script_from_text

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import CallFacts, ModelFacts
from mpdoctor.facts.training import OperationFacts, PredictionFacts, TrainingFacts, excuse_of
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Verdict
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.semantics.live.prediction_verdict import probe_from_facts

SCRIPT = """\
    class Energy(L.Layer):
        def call(self, x):
            return tf.reduce_max(tf.square(x), -1, keepdims=True)


    class Masked(L.Layer):
        def call(self, x):
            return tf.where(x > 0, x, tf.constant(-np.inf, x.dtype))


    class Logs(L.Layer):
        def call(self, x):
            return tf.math.log(tf.nn.relu(x))


    def model(name, layer):
        return K.Sequential([L.Input((8,)), layer, L.Dense(1, dtype="float32", kernel_initializer="ones")], name=name)


    def raw(name, layer):
        inputs = L.Input((8,))
        return K.Model(inputs, layer(inputs), name=name)


    large = np.ones((96, 8), "float32")
    large[70:] = 300
    holes = large.copy() / 300
    holes[3] = np.nan

    model("predicted", Energy()).predict(large)
    model("predicted_in_a_dataset", Energy()).predict(tf.data.Dataset.from_tensor_slices(large).batch(16))
    model("predicted_on_a_batch", Energy()).predict_on_batch(large[64:80])
    model("from_a_generator", Energy()).predict(((large[at : at + 16],) for at in range(0, 96, 16)), steps=6)
    evaluated = model("evaluated", Energy())
    evaluated.compile(loss="mse")
    evaluated.evaluate(large, np.ones((96, 1)), verbose=0)
    called = model("called", Energy())
    for start in range(0, 96, 16):
        called(large[start : start + 16])
    in_graph = model("called_in_a_function", Energy())


    @tf.function
    def infer(batch):
        return {"scores": tf.nn.softmax(in_graph(batch))}


    infer(tf.constant(large[64:]))
    with tf.GradientTape() as tape:
        under_a_tape = model("under_a_tape", Energy())
        under_a_tape(large)

    class Overrides(K.Sequential):
        def predict(self, x, extra):
            return super().predict(x, batch_size=8)


    Overrides([L.Input((8,)), Energy()], name="overrides").predict(large / 300, 1)
    raw("nothing_given_out", L.Lambda(lambda x: x[:, :0])).predict(large)
    model("finite", Energy()).predict(large / 300)
    raw("masked", Masked(dtype="float16")).predict(-large)
    raw("log_of_zero", Logs()).predict(-large)
    model("holes_in_the_data", L.Dense(4)).predict(holes)
    twice = model("finite_twice", Energy())
    twice(large / 300)
    twice.predict(large[:32])
    """
BROKEN = {
    "predicted": "predict",
    "predicted_in_a_dataset": "predict",
    "predicted_on_a_batch": "predict_on_batch",
    "evaluated": "evaluate",
    "called": "call",
    "called_in_a_function": "call",
    "under_a_tape": "call",
}
WHOLE = {
    "overrides": "",
    "nothing_given_out": "",
    "finite": "",
    "finite_twice": "",
    "masked": "constant",
    "log_of_zero": "range",
    "holes_in_the_data": "data",
}


@pytest.fixture(scope="module", params=[pytest.param(keras, marks=needs_keras(keras)) for keras in ("tf_keras", "3")])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ExaminationFacts:
    path = script_from_text(tmp_path_factory.mktemp("predicting") / "predict.py", SCRIPT)
    return examined(path, request.param, steps=10)


@pytest.mark.slow
def test_the_calls_of_a_program_that_only_predicts_are_looked_at(run: ExaminationFacts) -> None:
    by_name = {training.model.name: training for training in run.trainings}
    assert by_name.keys() == {*BROKEN, *WHOLE, "from_a_generator"}
    assert run.training_status == ("skipped", "the program only predicts")
    assert {model.call.kind for model in run.models if model.name in by_name} == {"predict"}
    for name, by in BROKEN.items():
        told = by_name[name]
        assert told.prediction and told.prediction.by == by, name
        assert told.culprit is not None and told.culprit.overflow.layer.startswith("energy"), name
        assert told.culprit.operation is not None and told.culprit.operation.in_float32 == 90_000, name
        assert probe_from_facts(told).verdict is Verdict.NOT_FINITE, name
        assert "MP904" in spoken(told), name
    for name, excuse in WHOLE.items():
        told = by_name[name]
        assert told.prediction and told.prediction.excuse == excuse, name
        assert probe_from_facts(told).verdict is Verdict.HEALTHY, name
        assert not spoken(told), name
    assert by_name["called"].prediction and by_name["called"].prediction.calls == 6


@pytest.mark.slow
@needs_keras("3")
@pytest.mark.parametrize(("scale", "shown"), [("1.0", []), ("1e4", ["not-finite"])])
def test_finite_predictions_before_an_error_are_no_result(tmp_path: Path, scale: str, shown: list[str]) -> None:
    text = f"""\
    model = K.Sequential([L.Input((8,)), L.Dense(8, kernel_initializer="ones"), L.Dense(1, dtype="float32")])
    model(np.full((4, 8), {scale}, "float32"))
    raise ValueError("no optimizer")
    """
    script_from_text(tmp_path / "train.py", text)
    done = check("train.py", directory=tmp_path)
    assert done.finding("MP002")
    assert [probe["verdict"] for probe in done.report["probes"]] == shown


@pytest.mark.slow
def test_what_cannot_be_repeated_is_said(run: ExaminationFacts) -> None:
    told = next(training for training in run.trainings if training.model.name == "from_a_generator")
    ((measurement, reason),) = told.not_looked
    assert (
        measurement == "first number not finite"
        and "gave 26 of 96 numbers as inf or NaN" in reason
        and "generator" in reason
    )
    assert probe_from_facts(told).verdict is Verdict.NOT_FINITE


def spoken(training: TrainingFacts) -> list[str]:
    keras = training.model.keras
    found = findings_from_facts("in_training", training, keras, lambda rule: True)
    return [finding.code for finding in found if isinstance(finding, Finding)]


# --- without TensorFlow -------------------------------------------------------------------------------------------
SQUARE = OperationFacts("Square", "layer", "float16", "inf", 300.0, 300.0, in_float32=90_000.0)


@pytest.mark.parametrize(
    ("change", "nan", "excuse"),
    [
        ({}, 0, ""),
        ({}, 5, ""),
        ({"given": "data"}, 5, "data"),
        ({"given": "constant", "in_float32": None}, 0, "constant"),
        ({"given": "constant", "in_float32": None}, 5, ""),
        ({"in_float32": float("inf")}, 0, "range"),
        ({"in_float32": None}, 0, "range"),
        ({"in_float32": None}, 5, ""),
        ({"dtype": "float32"}, 5, "range"),
        ({"dtype": "bfloat16"}, 0, "range"),
    ],
)
def test_float16_is_blamed_for_what_float32_holds(change: dict[str, object], nan: int, excuse: str) -> None:
    assert excuse_of(dataclasses.replace(SQUARE, **change), nan) == excuse  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "speaks"), [("fit", ["MP315"]), ("none", ["MP315"]), ("predict", [])], ids=["fit", "none", "predict"]
)
def test_rules_of_loss_scaling_are_silent_where_a_program_only_evaluates(kind: str, speaks: list[str]) -> None:
    from mpdoctor.facts.model import OptimizerFacts

    layer = LayerFacts("dense", "Dense", "mixed_float16", "float16", "float32")
    optimizer = (OptimizerFacts("LossScaleOptimizer", "keras", is_wrapper=True), OptimizerFacts("Adam", "keras"))
    model = ModelFacts(
        "m", "m", "Sequential", "mixed_float16", Keras("keras", "3.15"), (layer,), optimizer,
        call=CallFacts(kind), compiled=True, replicas=2, policy_set=True, global_policy="mixed_float16",
    )  # fmt: skip
    found = findings_from_facts("in_model", model, model.keras, lambda rule: rule.code.startswith("MP3"))
    assert [finding.code for finding in found if isinstance(finding, Finding)] == speaks


def test_a_prediction_says_what_it_gave() -> None:
    model = ModelFacts("m", "m", "Sequential", "float32", Keras("keras", "3.15"), call=CallFacts("predict"))
    seen = PredictionFacts("predict", 2, 64, nonfinite=8, nan=8, excuse="range")
    probe = probe_from_facts(TrainingFacts(model, "real", "CPU", 0, prediction=seen))
    assert (probe.verdict, probe.why) == (
        Verdict.NOT_FINITE,
        "not trained; `predict()` gave 8 of 64 numbers as inf or NaN, and does so in float32 too",
    )


UPDATED_BY_HAND = """\
    model = dense_model()
    for step in range(12):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        for weight, gradient in zip(model.trainable_variables, gradients):
            weight.assign(weight - 0.01 * tf.cast(gradient, weight.dtype))
    """


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("tf_keras", "3")])
def test_a_program_that_changes_weights_itself_does_not_only_predict(tmp_path: Path, keras: str) -> None:
    run = examined(script_from_text(tmp_path / "script.py", UPDATED_BY_HAND), keras, steps=10)
    reason = "the program takes gradients by the weights, and no optimizer applies them"
    assert run.training_status == ("skipped", reason)


EVOLVES = """\
    body = dense_model()
    for _ in range(3):
        body.predict(x, verbose=0)
        {update}
    """
REASON = "no optimizer trains the model; the program changes its weights itself, between its predictions"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("update", "reason"),
    [
        ("body.set_weights([w + np.float32(0.1) for w in body.get_weights()])", REASON),
        ("body.trainable_variables[0].assign(body.trainable_variables[0] * 2 + 1)", REASON),
        ("body.set_weights(body.get_weights())", "the program only predicts"),
        ("body.trainable = False", "the program only predicts"),
    ],
)
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("tf_keras", "3")])
def test_a_search_for_weights_does_not_only_predict(tmp_path: Path, keras: str, update: str, reason: str) -> None:
    run = examined(script_from_text(tmp_path / "script.py", EVOLVES.format(update=update)), keras, steps=10)
    assert run.training_status == ("skipped", reason)


UPDATES_IN_FIT = """\
    class Updates(K.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(y - self(x, training=True)))
            for weight, gradient in zip(self.trainable_variables, tape.gradient(loss, self.trainable_variables)):
                weight.assign(weight - 0.01 * tf.cast(gradient, weight.dtype))
            return {"loss": loss}

    body = dense_model()
    model = Updates(body.inputs, body.outputs)
    model.compile("sgd", "mse")
    model.fit(x, y, batch_size=16, epochs=40, verbose=0)
    """


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("tf_keras", "3")])
def test_a_fit_in_which_no_optimizer_steps_ends_before_the_budget(tmp_path: Path, keras: str) -> None:
    run = examined(script_from_text(tmp_path / "script.py", UPDATES_IN_FIT), keras, steps=10)
    (training,) = run.trainings
    assert (training.steps, training.ended) == ((), "steps")
