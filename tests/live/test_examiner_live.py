"""The examiner beside a real TensorFlow: the facts that it captures of loops, data and layers, and that it changes no
training.

Each script is examined in a process of its own, as a user's would be; default are those whose way is not gone by a
project under fixtures/projects, in one Keras.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checking import ROOT, needs_keras, needs_tensorflow
from live import START, examined, script_from_text

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Verdict
from mpdoctor.semantics.live.verdict import verdict_from_training

STEPS = 12
SCRIPTS = {
    "gan": """\
        generator, discriminator = dense_model(8), dense_model()
        g_optimizer, d_optimizer = wrapped(K.optimizers.Adam(1e-3)), wrapped(K.optimizers.Adam(1e-3))
        g_optimizer.build(generator.trainable_variables)
        d_optimizer.build(discriminator.trainable_variables)
        entropy = K.losses.BinaryCrossentropy(from_logits=True)


        @tf.function
        def train_step(real):
            noise = tf.random.normal((16, 8))
            with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
                fake = discriminator(generator(noise, training=True), training=True)
                true = discriminator(real, training=True)
                g_loss = scaled(g_optimizer, entropy(tf.ones_like(fake), fake))
                d_loss = entropy(tf.ones_like(true), true) + entropy(tf.zeros_like(fake), fake)
                d_loss = scaled(d_optimizer, d_loss)
            update(g_optimizer, g_tape, g_loss, generator.trainable_variables)
            update(d_optimizer, d_tape, d_loss, discriminator.trainable_variables)


        for _ in range(20):
            for batch in tf.data.Dataset.from_tensor_slices(x).batch(16):
                train_step(batch)
        """,
    "epoch in one tf.function": """\
        model, optimizer = dense_model(), wrapped(K.optimizers.SGD(0.01))
        optimizer.build(model.trainable_variables)
        batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)


        @tf.function
        def epoch():
            for inputs, targets in batches:
                with tf.GradientTape() as tape:
                    loss = scaled(optimizer, tf.reduce_mean(tf.square(model(inputs) - targets)))
                update(optimizer, tape, loss, model.trainable_variables)


        for _ in range(3):
            epoch()
        """,
    "jit_compile": """\
        model, optimizer = dense_model(), wrapped(K.optimizers.SGD(0.01))
        optimizer.build(model.trainable_variables)


        @tf.function(jit_compile=True)
        def train_step(inputs, targets):
            with tf.GradientTape() as tape:
                loss = scaled(optimizer, tf.reduce_mean(tf.square(model(inputs) - targets)))
            update(optimizer, tape, loss, model.trainable_variables)


        for start in list(range(0, 96, 16)) * 5:
            train_step(x[start : start + 16], y[start : start + 16])
        """,
    "generator": """\
        def batches():
            while True:
                for start in range(0, 96, 16):
                    yield {"numbers": x[start : start + 16]}, y[start : start + 16]


        inputs = L.Input((8,), name="numbers")
        model = K.Model(inputs, L.Dense(1, dtype="float32")(L.Dense(4)(inputs)))
        model.compile("adam", "mse")
        model.fit(batches(), steps_per_epoch=6, epochs=2)
        """,
    "generator that ends": """\
        def batches():
            for start in range(0, 96, 16):
                yield x[start : start + 16], y[start : start + 16]


        model = dense_model()
        model.compile("adam", "mse")
        model.fit(batches())
        """,
    "train_step": """\
        class Mine(K.Model):
            def __init__(self):
                super().__init__()
                self.hidden, self.out = L.Dense(8, activation="relu"), L.Dense(1, dtype="float32")

            def call(self, inputs, training=None):
                return self.out(self.hidden(inputs))

            def train_step(self, data):
                inputs, targets = data
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(self(inputs, training=True) - targets))
                    total = scaled(self.optimizer, loss)
                update(self.optimizer, tape, total, self.trainable_variables)
                return {"loss": loss}


        model = Mine()
        model.compile("adam")
        model.fit(x, y, batch_size=16)
        """,
    "train_on_batch": """\
        model = dense_model()
        model.compile("adam", "mse")
        for start in (*range(0, 80, 16), 88) * 4:  # the last batch is smaller
            model.train_on_batch(x[start : start + 16], y[start : start + 16])
        """,
    "weighted tf.data under XLA": """\
        inputs = L.Input((8,), name="numbers")
        model = K.Model(inputs, L.Dense(1, dtype="float32")(L.Dense(4)(inputs)))
        model.compile("adam", "mse", jit_compile=True)
        batches = tf.data.Dataset.from_tensor_slices(({"numbers": x}, y, tf.ones(96))).batch(40)
        model.fit(batches, epochs=9)
        """,
    "several steps an execution": """\
        model = dense_model()
        model.compile("adam", "mse", steps_per_execution=4)
        model.fit(x, y, batch_size=16, epochs=4)
        """,
    "a strategy": """\
        strategy = tf.distribute.MirroredStrategy(["CPU:0"])
        with strategy.scope():
            model = dense_model()
            model.compile("adam", "mse")
        model.fit(x, y, batch_size=40, epochs=9)
        """,
    "legacy optimizer": """\
        model, optimizer = dense_model(), wrapped(K.optimizers.legacy.Adam(1e-3))
        optimizer.epsilon = 1e-4
        optimizer.beta_1 = 0.8
        model.compile(optimizer, "mse")
        model.fit(x, y, batch_size=16)
        """,
    "layers": """\
        class Own(L.Layer):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                self.inner = L.Dense(4, name="inner")  # made: inner

            def call(self, inputs):
                return tf.cast(self.inner(inputs), "float32")


        made = []


        @tf.function
        def make():
            if tf.constant(True):
                made.append(L.Dense(8, name="graph"))  # made: graph
            return 0


        make()
        inputs = L.Input((8,), name="numbers")
        hidden = L.Dense(8, name="hidden")(inputs)
        encoder = K.Model(inputs, L.Dense(4, name="ends")(hidden), name="encoder")  # made: ends encoder
        outer = L.Input((8,), name="outer")
        joined = L.Concatenate(name="joined")([encoder(outer), made[0](outer)])
        result = L.Dense(1, dtype="float32", name="result")(Own(name="own")(joined))  # made: own result
        model = K.Model(outer, result, name="whole")
        optimizer = wrapped(K.optimizers.Adam(1e-3))
        optimizer.learning_rate = 1e-4
        optimizer.epsilon = 1e-4
        model.compile(optimizer, "mse")
        model.fit(x, y, batch_size=16)
        """,
}
# The Keras in which a script is examined by default; the other one waits for the slow run.
DEFAULT = {
    "jit_compile": "tf_keras",
    "generator": "tf_keras",
    "layers": "3",
}
SLOW = [pytest.mark.slow, pytest.mark.sampled(13, "live scripts")]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], ExaminationFacts]:
    """Examines each script once in each Keras."""
    known: dict[tuple[str, str], ExaminationFacts] = {}

    def look(name: str, keras: str) -> ExaminationFacts:
        if (name, keras) not in known:
            path = tmp_path_factory.mktemp("scripts") / "train.py"
            script_from_text(path, SCRIPTS[name])
            known[name, keras] = examined(path, keras, steps=STEPS)
        return known[name, keras]

    return look


def in_kerases(*names: str) -> pytest.MarkDecorator:
    """Every script in both Kerases; slow where it is not the default."""
    return pytest.mark.parametrize(
        ("name", "keras"),
        [
            pytest.param(
                name,
                keras,
                id=f"{name}-{keras}",
                marks=[needs_keras(keras), *([] if DEFAULT.get(name) == keras else SLOW)],
            )
            for name in names
            for keras in ("3", "tf_keras")
        ],
    )


def only_training(facts: ExaminationFacts) -> TrainingFacts:
    (training,) = facts.trainings
    return training


# --- loops ------------------------------------------------------------------------------------------------------
RIGHT = ("gan", "epoch in one tf.function", "jit_compile", "generator", "train_step", "train_on_batch")
OF_KERAS = ("weighted tf.data under XLA", "several steps an execution", "a strategy")


@in_kerases(*RIGHT, *OF_KERAS)
def test_a_right_training_is_seen_step_by_step(seen: Any, name: str, keras: str) -> None:
    for facts in seen(name, keras).trainings:
        assert_seen_step_by_step(facts, name)


def assert_seen_step_by_step(facts: TrainingFacts, name: str) -> None:
    assert facts.failure is None
    assert (len(facts.steps), facts.ended) == (STEPS, "steps")
    assert verdict_from_training(facts) == (Verdict.HEALTHY, f"{STEPS} steps, none skipped")
    assert {step.loss_scale for step in facts.steps} == {32768.0}
    losses = [step.loss for step in facts.steps]
    assert len({round(loss or 0.0, 6) for loss in losses}) > STEPS / 2, losses
    assert all(0 < (loss or 0.0) < 20 for loss in losses), "the losses are those before scaling"
    assert facts.weights_changed is True
    assert facts.weights_finite
    loops = ("gan", "epoch in one tf.function", "jit_compile")
    assert facts.model.call.kind == ("loop" if name in loops else name if name == "train_on_batch" else "fit")
    if facts.scale_dependence is not None:
        assert abs(facts.scale_dependence.median) < 0.1
        assert {measurement for measurement, _ in facts.not_looked} == set()
    else:
        assert {measurement for measurement, _ in facts.not_looked} == {"two loss scales"}, (
            "nothing is left out without a word"
        )


@in_kerases("generator that ends")
def test_a_generator_that_ends_gives_the_steps_that_it_had(seen: Any, name: str, keras: str) -> None:
    facts = only_training(seen(name, keras))
    # Keras 3 looked at the first two batches beforehand, and would show them in every later epoch
    assert (len(facts.steps), facts.ended) == (6, "script")
    assert verdict_from_training(facts)[0] is Verdict.INCONCLUSIVE


@in_kerases("generator")
def test_the_batches_of_a_generator_are_described(seen: Any, name: str, keras: str) -> None:
    features, labels = only_training(seen(name, keras)).model.data
    assert (features.role, features.name, features.dtype, features.shape[-1]) == ("features", "numbers", "float32", 8)
    assert (labels.role, labels.name, labels.shape[-1]) == ("labels", "", 1)


# --- layers and optimizers --------------------------------------------------------------------------------------
def layers_of(facts: ExaminationFacts) -> dict[str, LayerFacts]:
    (model,) = facts.models
    return {layer.path.rsplit("/", 1)[-1]: layer for layer in model.layers}


@in_kerases("layers")
def test_every_layer_is_found_with_its_line(seen: Any, name: str, keras: str) -> None:
    facts = seen(name, keras)
    layers = layers_of(facts)
    (model,) = facts.models
    path = model.made_at.path
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    expected = {
        layer: number for number, line in enumerate(lines, 1) for layer in line.partition("# made: ")[2].split()
    }
    assert {name: layers[name].made_at.line for name in expected} == expected
    assert {layer.made_at.path for layer in layers.values() if layer.made_at} == {path}
    assert [layer.path for layer in model.layers if layer.path.startswith("encoder")] == [
        "encoder", "encoder/numbers", "encoder/hidden", "encoder/ends",
    ]  # fmt: skip
    assert layers["inner"].path == "own/inner"


@in_kerases("layers")
def test_what_a_layer_is_and_puts_out(seen: Any, name: str, keras: str) -> None:
    layers = layers_of(seen(name, keras))
    assert {name for name, layer in layers.items() if layer.is_output} == {"result"}
    assert {name for name, layer in layers.items() if layer.ends_submodel} == {"ends"}
    assert {name for name, layer in layers.items() if layer.is_model} == {"encoder"}
    assert {name for name, layer in layers.items() if layer.own_class} == {"own"}
    put_out = {name: layer.output_dtypes for name, layer in layers.items()}
    assert put_out["ends"] == put_out["inner"] == put_out["graph"] == put_out["encoder"] == ("float16",)
    assert put_out["own"] == put_out["result"] == ("float32",)
    assert (layers["own"].compute_dtype, layers["result"].compute_dtype) == ("float16", "float32")
    assert layers["hidden"].variables == (("float32", 64, True), ("float32", 8, True))


@in_kerases("layers")
def test_a_value_set_on_the_wrapper_is_followed_inside(seen: Any, name: str, keras: str) -> None:
    wrapper, inner = seen(name, keras).models[0].optimizer
    rate, epsilon = wrapper.writes
    assert (rate.name, rate.value, rate.reached_inner) == ("learning_rate", "0.0001", True)
    assert (epsilon.name, epsilon.value, epsilon.inner_value, epsilon.reached_inner) == (
        "epsilon", "0.0001", "1e-07", False,
    )  # fmt: skip
    assert epsilon.location.line == rate.location.line + 1
    assert wrapper.is_wrapper
    assert (inner.class_name, inner.writes) == ("Adam", ())


@pytest.mark.slow
@needs_keras("tf_keras")
def test_a_legacy_optimizer_gets_what_its_wrapper_delegates(seen: Any) -> None:
    facts = seen("legacy optimizer", "tf_keras")
    assert only_training(facts).weights_changed
    writes = {write.name: write.reached_inner for write in facts.models[0].optimizer[0].writes}
    assert writes == {"epsilon": False, "beta_1": True}


# --- nothing of the user's training changes ---------------------------------------------------------------------
SEEDED = {
    "fit": """\
        model = K.Sequential(
            [
                L.Input((8,)),
                L.Dense(16, activation="relu"),
                L.BatchNormalization(),
                L.Dropout(0.4),
                L.Dense(1, dtype="float32"),
            ]
        )
        losses = []


        class Losses(K.callbacks.Callback):
            def on_train_batch_begin(self, batch, logs=None):
                for metric in self.model.metrics:
                    metric.reset_state()  # else Keras shows the mean over the epoch

            def on_train_batch_end(self, batch, logs=None):
                losses.append(float(logs["loss"]))


        model.compile("adam", "mse")
        # 5 batches, the last of them smaller
        model.fit(x[:72], y[:72], batch_size=16, epochs=10, verbose=0, callbacks=[Losses()])
        """,
    "eager loop": """\
        model = K.Sequential([L.Input((8,)), L.Dense(16, "relu"), L.BatchNormalization(), L.Dense(1, dtype="float32")])
        optimizer = wrapped(K.optimizers.Adam(0.01, use_ema=KERAS3, ema_overwrite_frequency=20 if KERAS3 else None))
        losses = []
        for _ in range(50):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
                total = scaled(optimizer, loss)
            update(optimizer, tape, total, model.trainable_variables)
            losses.append(float(loss))
        """,
    "loop that scales the parts of its loss": """\
        model = K.Sequential([L.Input((8,)), L.Dense(16, "relu", kernel_regularizer="l2"), L.Dense(1, dtype="float32")])
        optimizer = wrapped(K.optimizers.Adam(0.01))
        losses = []
        for _ in range(50):
            with tf.GradientTape() as tape:
                error, decay = tf.reduce_mean(tf.square(model(x, training=True) - y)), tf.add_n(model.losses)
                total = scaled(optimizer, error) + scaled(optimizer, decay)
            update(optimizer, tape, total, model.trainable_variables)
            losses.append(float(error + decay))
        """,
}
SHOWN = """
with open(sys.argv[1], "w") as file:
    json.dump(losses, file)
"""


@pytest.mark.parametrize(
    ("name", "keras"),
    [
        pytest.param("fit", "tf_keras", marks=needs_keras("tf_keras")),
        pytest.param("eager loop", "3", marks=[needs_keras("3"), pytest.mark.slow]),
        pytest.param("fit", "3", marks=[needs_keras("3"), pytest.mark.slow]),
        pytest.param("eager loop", "tf_keras", marks=[needs_keras("tf_keras"), pytest.mark.slow]),
        pytest.param("loop that scales the parts of its loss", "3", marks=needs_keras("3")),
    ],
)
def test_a_seeded_training_goes_as_it_goes_without_us(tmp_path: Path, name: str, keras: str) -> None:
    """Shuffling, dropout, statistics, loss scale, updates: the loss of each of 50 steps is that of plain Keras."""
    script, plain = tmp_path / "train.py", tmp_path / "losses.json"
    text = "import json\nimport sys\n" + START + textwrap.dedent(SEEDED[name]) + SHOWN
    script.write_text(text, encoding="utf-8")
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, script, plain], env=environment, check=True, capture_output=True)
    expected = json.loads(plain.read_text())
    training = only_training(examined(script, keras, str(plain), steps=50))
    assert [step.loss for step in training.steps] == pytest.approx(expected, abs=1e-6)
    assert len(expected) == 50
    assert len(set(expected)) > 25
    assert training.scale_dependence is not None, "the two scales were compared"


# --- the device -------------------------------------------------------------------------------------------------
MEMORY = """
class Memory(K.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        query = ["nvidia-smi", "--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits"]
        open(sys.argv[1], "w").write(subprocess.check_output(query, text=True))


model = dense_model()
model.compile("adam", "mse")
model.fit(x, y, batch_size=16, callbacks=[Memory()])
"""


@pytest.mark.needs_gpu
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no GPU here: nvidia-smi is not found")
@needs_keras("3")
def test_a_gpu_is_used_and_most_of_its_memory_left(tmp_path: Path) -> None:
    script = script_from_text(tmp_path / "train.py", MEMORY)
    script.write_text("import subprocess\nimport sys\n" + script.read_text(encoding="utf-8"), encoding="utf-8")
    (training,) = examined(script, "3", str(tmp_path / "memory"), steps=STEPS).trainings
    assert training.device.startswith("GPU")
    used, total = map(int, (tmp_path / "memory").read_text().splitlines()[0].split(","))
    assert used < total / 2


# --- data -------------------------------------------------------------------------------------------------------
@needs_tensorflow
def test_data_of_every_kind_is_described() -> None:
    from mpdoctor.examiner.capture.data import arrays_from_arguments, arrays_from_batch  # it imports numpy

    np, tf = importlib.import_module("numpy"), importlib.import_module("tensorflow")
    floats, ids = np.zeros((6, 3), "float32"), np.zeros((6,), "int64")
    texts = np.array([[None], ["red"], ["blue"]], dtype=object)
    dataset = tf.data.Dataset.from_tensor_slices(({"a": floats, "b": ids}, ids, floats[:, 0])).batch(4)

    def told(**arguments: Any) -> list[tuple[Any, ...]]:
        return [(a.role, a.name, a.container, a.dtype, a.shape, a.holds) for a in arrays_from_arguments(arguments)]

    assert told(x=floats, y=ids) == [
        ("features", "", "numpy array", "float32", (6, 3), ""),
        ("labels", "", "numpy array", "int64", (6,), ""),
    ]
    assert told(x={"a": floats, "b": [floats, ids]}) == [
        ("features", "a", "numpy array", "float32", (6, 3), ""),
        ("features", "b[0]", "numpy array", "float32", (6, 3), ""),
        ("features", "b[1]", "numpy array", "int64", (6,), ""),
    ]
    assert told(x=texts) == [("features", "", "numpy array", "object", (3, 1), "str")]
    assert told(x=[[1.0, 2.0], [3.0, 4.0]], y=["a", "b"]) == [
        ("features", "", "list", "float", (2, 2), "float"),
        ("labels", "", "list", "string", (2,), "str"),
    ]
    assert told(x=tf.zeros((6, 3), tf.float16)) == [("features", "", "tensor", "float16", (6, 3), "")]
    assert told(x=dataset) == [
        ("features", "a", "tf.data.Dataset", "float32", (None, 3), ""),
        ("features", "b", "tf.data.Dataset", "int64", (None,), ""),
        ("labels", "", "tf.data.Dataset", "int64", (None,), ""),
        ("sample weights", "", "tf.data.Dataset", "float32", (None,), ""),
    ]
    unknown = tf.data.Dataset.from_generator(lambda: iter(()), (tf.float32, tf.string))
    assert told(x=unknown) == [
        ("features", "", "tf.data.Dataset", "float32", (), ""),
        ("labels", "", "tf.data.Dataset", "string", (), ""),
    ]
    assert told() == told(x=None, y=None) == told(x=[]) == told(x=iter("ab")) == []
    batch = arrays_from_batch((floats, None, floats[:, 0]))
    assert [(array.role, array.container) for array in batch] == [("features", "batch"), ("sample weights", "batch")]


def test_the_scripts_are_examined_somewhere_by_default() -> None:
    assert set(DEFAULT) <= set(SCRIPTS)
    assert set(DEFAULT.values()) <= {"3", "tf_keras"}
