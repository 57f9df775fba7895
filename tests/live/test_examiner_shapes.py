"""Training code of every shape beside a real TensorFlow: several optimizers in a step, strategies, data of every kind,
loops of every kind. Each script is examined in a process of its own, in both Kerases; most of it in the slow run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checking import check, needs_keras
from live import examined, script_from_text

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Verdict
from mpdoctor.semantics.live.verdict import verdict_from_training

STEPS = 12
ENTROPY = "entropy = K.losses.BinaryCrossentropy(from_logits=True)\n"
GAN = """\
generator, discriminator = dense_model(8), dense_model()
generator.build((None, 8))
discriminator.build((None, 8))
g_optimizer, d_optimizer = wrapped(K.optimizers.Adam(1e-3)), wrapped(K.optimizers.Adam(1e-3))
g_optimizer.build(generator.trainable_variables)
d_optimizer.build(discriminator.trainable_variables)


def train_discriminator(real, noise):
    with tf.GradientTape() as tape:
        fake, true = discriminator(generator(noise)), discriminator(real)
        loss = entropy(tf.ones_like(true), true) + entropy(tf.zeros_like(fake), fake)
        total = scaled(d_optimizer, loss)
    update(d_optimizer, tape, total, discriminator.trainable_variables)


def train_generator(noise):
    with tf.GradientTape() as tape:
        fake = discriminator(generator(noise))
        total = scaled(g_optimizer, entropy(tf.ones_like(fake), fake))
    update(g_optimizer, tape, total, generator.trainable_variables)


"""
LOOP = """\
model, optimizer = dense_model(), wrapped(K.optimizers.Adam(0.01))
optimizer.build(model.trainable_variables)
shuffled = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96).repeat().batch(8)


def step(inputs, targets):
    with tf.GradientTape() as tape:
        loss = scaled(optimizer, tf.reduce_mean(tf.square(model(inputs, training=True) - targets)))
    update(optimizer, tape, loss, model.trainable_variables)


"""
TWO_REPLICAS = """\
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
"""
FIT = "model = dense_model()\nmodel.compile('adam', 'mse')\n"
SUMS = """\
sums = [tf.Variable(tf.zeros(v.shape)) for v in model.trainable_variables]


def add(inputs, targets):
    with tf.GradientTape() as tape:
        total = scaled(optimizer, tf.reduce_mean(tf.square(model(inputs) - targets)) / 4)
    gradients = tape.gradient(total, model.trainable_variables)
    if not KERAS3:
        gradients = optimizer.get_unscaled_gradients(gradients)
    for kept, gradient in zip(sums, gradients):
        kept.assign_add(gradient)


def apply():
    pairs = zip([tf.convert_to_tensor(kept) for kept in sums], model.trainable_variables)
    optimizer.apply_gradients(list(pairs))
    for kept in sums:
        kept.assign(tf.zeros_like(kept))


"""
SCRIPTS = {
    # --- several optimizers
    "gan, eager": ENTROPY
    + GAN
    + """\
for start in list(range(0, 96, 16)) * 5:
    train_discriminator(x[start : start + 16], tf.random.normal((16, 8)))
    train_generator(tf.random.normal((16, 8)))
""",
    "gan, a function each": ENTROPY
    + GAN
    + """\
train_discriminator, train_generator = tf.function(train_discriminator), tf.function(train_generator)
for start in list(range(0, 96, 16)) * 5:
    for _ in range(2):
        train_discriminator(tf.constant(x[start : start + 16]), tf.random.normal((16, 8)))
    train_generator(tf.random.normal((16, 8)))
""",
    "gan, train_step": ENTROPY
    + GAN
    + """\
class Both(K.Model):
    def __init__(self):
        super().__init__()
        self.generator, self.discriminator = generator, discriminator

    def train_step(self, real):
        for _ in range(3):
            train_discriminator(real, tf.random.normal((16, 8)))
        train_generator(tf.random.normal((16, 8)))
        return {"nothing": 0.0}


gan = Both()
gan.compile()
gan.fit(x, batch_size=16, epochs=3)
""",
    "gan, train_on_batch": ENTROPY
    + """\
generator, discriminator = dense_model(8), dense_model()
discriminator.compile("adam", entropy)
discriminator.trainable = False
gan = K.Sequential([L.Input((8,)), generator, discriminator])
gan.compile("adam", entropy)
for _ in range(30):
    noise = rng.normal(size=(16, 8)).astype("float32")
    fake = generator.predict_on_batch(noise)
    discriminator.trainable = True
    discriminator.train_on_batch(x[:16], np.ones((16, 1)))
    discriminator.train_on_batch(fake, np.zeros((16, 1)))
    discriminator.trainable = False
    gan.train_on_batch(noise, np.ones((16, 1)))
""",
    "actor and critic on one trunk": """\
inputs = L.Input((8,))
trunk = L.Dense(16, activation="relu")(inputs)
model = K.Model(inputs, [L.Dense(3, dtype="float32")(trunk), L.Dense(1, dtype="float32")(trunk)], name="agent")
optimizers = [wrapped(K.optimizers.Adam(1e-3, name="actor")), wrapped(K.optimizers.Adam(1e-3, name="critic"))]
own = [model.layers[1].trainable_variables + model.layers[2 + n].trainable_variables for n in range(2)]
for optimizer, variables in zip(optimizers, own):
    optimizer.build(variables)


@tf.function
def step(inputs, targets):
    for n, optimizer in enumerate(optimizers):
        with tf.GradientTape() as tape:
            loss = scaled(optimizer, tf.reduce_mean(tf.square(model(inputs)[n] - targets)))
        update(optimizer, tape, loss, own[n])


for start in list(range(0, 96, 16)) * 5:
    step(tf.constant(x[start : start + 16]), tf.constant(y[start : start + 16]))
""",
    # --- strategies
    "replicas, fit": TWO_REPLICAS
    + "with strategy.scope():\n    model = dense_model()\n    model.compile('adam', 'mse')\n"
    + "model.fit(x, y, batch_size=32, epochs=9)\n",
    "replicas, loop": TWO_REPLICAS
    + """\
with strategy.scope():
    model, optimizer = dense_model(), wrapped(K.optimizers.Adam(1e-3))
    optimizer.build(model.trainable_variables)


def step(inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(tf.reduce_mean(tf.square(model(inputs) - targets), -1), global_batch_size=32)
        total = scaled(optimizer, loss)
    update(optimizer, tape, total, model.trainable_variables)


@tf.function
def train(batch):
    strategy.run(step, args=batch)


batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(32).repeat(20)
for batch in strategy.experimental_distribute_dataset(batches):
    train(batch)
""",
    "replicas, NaN on the second": TWO_REPLICAS
    + "with strategy.scope():\n    model = dense_model()\n    model.compile('adam', 'mse')\n"
    + "x[50] = np.nan  # of a batch of 32, the second replica has the second half\n"
    + "model.fit(x, y, batch_size=32, epochs=9, shuffle=False)\n",
    # --- loops
    "loop, eager": LOOP + "for inputs, targets in shuffled:\n    step(inputs, targets)\n",
    "loop, a function a step": LOOP
    + "step = tf.function(step)\nfor inputs, targets in shuffled:\n    step(inputs, targets)\n",
    "loop, an endless one in a function": LOOP
    + """\
@tf.function
def everything():
    for inputs, targets in shuffled:
        step(inputs, targets)


try:
    everything()
except Exception:
    print("swallowed")
""",
    "loop, an iterator": LOOP
    + """\
batches = iter(shuffled)


@tf.function
def five():
    for _ in tf.range(5):
        step(*next(batches))


for _ in range(9):
    five()
""",
    "loop, accumulating eagerly": LOOP
    + SUMS
    + "for number, (inputs, targets) in enumerate(shuffled):\n    add(inputs, targets)\n"
    + "    if number % 4 == 3:\n        apply()\n",
    "loop, accumulating in functions": LOOP
    + SUMS
    + "add, apply = tf.function(add), tf.function(apply)\n"
    + "for number, (inputs, targets) in enumerate(shuffled):\n    add(inputs, targets)\n"
    + "    if number % 4 == 3:\n        apply()\n",
    # --- fit
    "fit, dicts and weights": """\
inputs = {name: L.Input((4,), name=name) for name in ("left", "right")}
joined = L.Concatenate()([L.Dense(4)(one) for one in inputs.values()])
model = K.Model(inputs, {"price": L.Dense(1, dtype="float32", name="price")(joined)})
model.compile("adam", {"price": "mse"})
model.fit({"left": x[:, :4], "right": x[:, 4:]}, {"price": y}, sample_weight={"price": np.ones(96)}, batch_size=16)
""",
    "fit, class weights": """\
model = K.Sequential([L.Input((8,)), L.Dense(3, dtype="float32", activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x, rng.integers(0, 3, 96), class_weight={0: 1.0, 1: 2.0, 2: 0.5}, batch_size=16, validation_split=0.2)
""",
    "fit, a sequence": """\
class Batches(K.utils.PyDataset if KERAS3 else K.utils.Sequence):
    def __len__(self):
        return 6

    def __getitem__(self, number):
        return x[number * 16 : number * 16 + 16], y[number * 16 : number * 16 + 16]


"""
    + FIT
    + "model.fit(Batches(), epochs=2)\n",
    "fit, callbacks that set attributes": """\
class Mine(K.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.model.optimizer.learning_rate = 1e-3 / (1 + batch)
        self.seen = batch


"""
    + FIT
    + "rate = K.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)\n"
    + "model.fit(x, y, batch_size=16, epochs=5, callbacks=[Mine(), rate])\n",
    "fit, clipping and averages": """\
model = dense_model()
averages = {"use_ema": True, "ema_overwrite_frequency": 3} if hasattr(K.optimizers.Adam(), "use_ema") else {}
model.compile(K.optimizers.Adam(1e-3, global_clipnorm=0.1, **averages), "mse")
model.fit(x, y, batch_size=16, epochs=5)
""",
    "fit, accumulating": """\
model = dense_model()
several = {"gradient_accumulation_steps": 3} if KERAS3 else {}
model.compile(K.optimizers.Adam(1e-3, **several), "mse")
model.fit(x, y, batch_size=16, epochs=9)
""",
    "fit, run eagerly": "model = dense_model()\nmodel.compile('adam', 'mse', run_eagerly=True)\n"
    + "model.fit(x, y, batch_size=16, epochs=5)\n",
}
# What is examined in Keras 3 or tf_keras by default; the rest waits for the slow run.
DEFAULT = {
    ("gan, train_step", "3"),
    ("replicas, loop", "tf_keras"),
    ("loop, an endless one in a function", "3"),
}
SLOW = [pytest.mark.slow, pytest.mark.sampled(19, "shapes of training code")]
# steps of each optimizer, in the order in which gradients first arrive
SEVERAL = {
    "gan, eager": (12, 12),
    "gan, a function each": (24, 12),
    "gan, train_step": (36, 12),
    "gan, train_on_batch": (24, 12),
    "actor and critic on one trunk": (12, 12),
}
SICK = ("replicas, NaN on the second",)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], ExaminationFacts]:
    """Examines each script once in each Keras."""
    known: dict[tuple[str, str], ExaminationFacts] = {}

    def look(name: str, keras: str) -> ExaminationFacts:
        if (name, keras) not in known:
            path = script_from_text(tmp_path_factory.mktemp("shapes") / "train.py", SCRIPTS[name])
            known[name, keras] = examined(path, keras, steps=STEPS)
        return known[name, keras]

    return look


def in_kerases(*names: str) -> pytest.MarkDecorator:
    """Every script in both Kerases; slow where it is not in DEFAULT."""
    return pytest.mark.parametrize(
        ("name", "keras"),
        [
            pytest.param(
                name,
                keras,
                id=f"{name}-{keras}",
                marks=[needs_keras(keras), *([] if (name, keras) in DEFAULT else SLOW)],
            )
            for name in names
            for keras in ("3", "tf_keras")
        ],
    )


def assert_right(training: TrainingFacts, steps: int) -> None:
    """A healthy training, seen whole, whose updates do not depend on the loss scale."""
    assert training.failure is None
    assert (len(training.steps), training.steps_wanted, training.ended) == (steps, steps, "steps")
    assert verdict_from_training(training) == (Verdict.HEALTHY, f"{steps} steps, none skipped")
    assert training.weights_changed is not False
    assert training.weights_finite
    assert all(0 < (step.loss or 0.0) < 20 for step in training.steps), "its own losses, before scaling"
    assert training.scale_dependence is not None, training.not_looked
    assert abs(training.scale_dependence.median) < 0.1
    assert training.not_looked == ()


@in_kerases(*(name for name in SCRIPTS if name not in (*SEVERAL, *SICK)))
def test_a_right_training_is_seen_whatever_its_shape(seen: Any, name: str, keras: str) -> None:
    (training,) = seen(name, keras).trainings
    assert_right(training, STEPS)
    assert training.name == ""
    assert training.replicas == (2 if name.startswith("replicas") else 1)


@in_kerases(*SEVERAL)
def test_every_optimizer_of_a_step_is_judged_by_itself(seen: Any, name: str, keras: str) -> None:
    facts = seen(name, keras)
    assert len(facts.trainings) == 2
    for training, steps in zip(facts.trainings, SEVERAL[name], strict=True):
        assert_right(training, steps)
    names = [training.name for training in facts.trainings]
    ids = [training.model.id for training in facts.trainings]
    assert len(set(names)) == 2
    assert set(ids) <= {model.id for model in facts.models}
    if name.startswith("gan"):
        assert names == ids, "each has a model of its own: the smallest that holds its variables"
        widths = [[sum(n for _, n, _ in layer.variables) for layer in t.model.layers] for t in facts.trainings]
        assert [layers[-1] for layers in widths] == [17, 136]
    else:
        assert names == ["agent (actor)", "agent (critic)"]


@in_kerases("replicas, NaN on the second")
def test_keras_3_applies_what_another_replica_overflowed(seen: Any, name: str, keras: str) -> None:
    """The weights hold NaN from then on; Keras 2 adds the gradients up before it looks, and skips the step."""
    (training,) = seen(name, keras).trainings
    assert training.replicas == 2
    second = training.steps[1]
    assert second.nonfinite_replicas == (1,)
    assert second.first_nonfinite is not None
    assert second.applied is (keras == "3")
    assert training.weights_finite is (keras != "3")
    later = {step.nonfinite_replicas for step in training.steps[2:]}
    assert later == ({(0, 1)} if keras == "3" else {(), (1,)})


@pytest.mark.parametrize("keras", [pytest.param("3", marks=[needs_keras("3"), pytest.mark.slow])])
def test_a_nan_that_escapes_is_an_error_where_the_strategy_stands(tmp_path: Path, keras: str) -> None:
    script_from_text(tmp_path / "train.py", SCRIPTS["replicas, NaN on the second"])
    told = check("train.py", "--steps", "12", directory=tmp_path, keras=keras)
    finding = told.finding("MP315")
    assert finding["severity"] == "error"
    assert finding["evidence"]["replicas"] == [1]
    (probe,) = told.report["probes"]
    assert probe["replicas"] == 2
    assert probe["nonfinite_replicas"]["1"] == [1]


@pytest.mark.parametrize(
    ("name", "keras"),
    [
        pytest.param("gan, train_step", "3", marks=[needs_keras("3"), pytest.mark.slow]),
        pytest.param("loop, eager", "tf_keras", marks=[needs_keras("tf_keras"), pytest.mark.slow]),
        pytest.param("fit, class weights", "tf_keras", marks=[needs_keras("tf_keras"), pytest.mark.slow]),
    ],
)
def test_the_same_script_gives_the_same_diagnosis(tmp_path: Path, name: str, keras: str) -> None:
    """Byte for byte, but for times."""
    script_from_text(tmp_path / "train.py", SCRIPTS[name])
    told = [check("train.py", "--steps", "12", "--seed", "7", directory=tmp_path, keras=keras) for _ in range(2)]
    assert told[0].report["probes"]
    first, second = (json.dumps(_without_times(done.report), sort_keys=True) for done in told)
    assert first == second


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(inner) for key, inner in value.items() if key != "seconds"}
    return [_without_times(inner) for inner in value] if isinstance(value, list) else value


def test_the_scripts_are_examined_somewhere_by_default() -> None:
    assert {name for name, _ in DEFAULT} <= set(SCRIPTS)
    assert set(SEVERAL) | set(SICK) <= set(SCRIPTS)
