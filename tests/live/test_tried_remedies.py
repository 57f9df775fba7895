"""Remedies of precision, tried in place on a failing batch: what is found, what is said, and whether the edit heals.

Each script has one defect. What is printed as tried is made in the source, and plain Keras trains the result, 50 steps
without a loss that is not finite; the layers are at most 1.2 times as many as the fewest that brute force finds."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from checking import Check, check, needs_keras
from live import START
from remedy_edits import edited
from truth.comparing import PlainKeras

BOTH = ("3", "tf_keras")


@dataclass(frozen=True)
class Sick:
    """`layers` that are tried and heal, by the last parts of their paths, in one Keras or in all ("");  `words`: of the
    help. `says`: what the other remedies came to."""

    script: str
    layers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    says: str = "healed"
    keras: tuple[str, ...] = BOTH

    @property
    def text(self) -> str:
        return START + textwrap.dedent(self.script)


BOOST = """
class Boost(L.Layer):
    def __init__(self, k, **given):
        super().__init__(**given)
        self.k = k

    def call(self, x):
        return x * self.k * 100.0
"""
FIT = """
model.compile(wrapped(K.optimizers.Adam(1e-3)), "mse")
model.fit(x, y, batch_size=16, epochs=9, verbose=0)
"""
LOOP = """
model(x[:16])
optimizer = wrapped(K.optimizers.Adam(1e-3))

{decorator}
def step(xb, yb):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.cast(model(xb, training=True), tf.float32) - yb) ** 2)
        loss_scaled = scaled(optimizer, loss)
    update(optimizer, tape, loss_scaled, model.trainable_variables)

for epoch in range(9):
    for start in range(0, 96, 16):
        step(tf.constant(x[start : start + 16]), tf.constant(y[start : start + 16]))
"""
CHAIN = """
model = K.Sequential([
    L.Input((8,)),
    L.Dense(16, activation="relu", name="a"),
    Boost(1e4, name="b"),
    L.Dense(8, name="c"),
    L.LayerNormalization(name="n"),
    L.Dense(1, dtype="float32", name="out"),
])
"""
SUBCLASSED = """
class Net(K.Model):
    def __init__(self):
        super().__init__()
        self.first = L.Dense(16, activation="relu", name="a")
        self.boost = Boost(1e4, name="b")
        self.second = L.Dense(8, name="c")
        self.norm = L.LayerNormalization(name="n")
        self.out = L.Dense(1, dtype="float32", name="out")

    def call(self, x):
        return self.out(self.norm(self.second(self.boost(self.first(x)))))

model = Net()
"""
NORM_CASTS_NOT = {"3": ("b", "c"), "tf_keras": ("b", "c", "n")}

SCRIPTS = {
    "sequential": Sick(BOOST + CHAIN + FIT, NORM_CASTS_NOT, ("`b` (line ", "in float32 this batch", "(tried)")),
    "one layer": Sick(
        """
        class Energy(L.Layer):
            def call(self, x):
                return tf.sqrt(tf.reduce_sum(tf.square(300.0 * x), -1, keepdims=True) + 1.0)

        model = K.Sequential([L.Input((8,)), L.Dense(16), Energy(name="energy"), L.Dense(1, dtype="float32")])
        """
        + textwrap.indent(FIT, " " * 8),
        {"": ("energy",)},
        ("Give `energy` (line ", 'dtype="float32": with it in float32 this batch'),
    ),
    "functional, residual": Sick(
        BOOST
        + """
inputs = K.Input((8,))
a = L.Dense(8, name="a")(inputs)
b = Boost(1e4, name="s")(L.Dense(8, activation="relu", name="b")(a))
n = L.LayerNormalization(name="n")(L.Add(name="add")([a, b]))
model = K.Model(inputs, L.Dense(1, dtype="float32", name="out")(n))
"""
        + FIT,
        {"3": ("s", "add"), "tf_keras": ("s", "add", "n")},
    ),
    "subclassed": Sick(BOOST + SUBCLASSED + FIT, NORM_CASTS_NOT),
    "own train_step": Sick(
        BOOST
        + """
class Net(K.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.cast(self(x, training=True), tf.float32) - y) ** 2)
            loss_scaled = scaled(self.optimizer, loss)
        update(self.optimizer, tape, loss_scaled, self.trainable_variables)
        return {"loss": loss}
"""
        + CHAIN.replace("K.Sequential(", "Net(")
        + FIT,
        NORM_CASTS_NOT,
    ),
    "tf.function": Sick(BOOST + CHAIN + LOOP.format(decorator="@tf.function"), NORM_CASTS_NOT),
    "eager loop": Sick(BOOST + CHAIN + LOOP.format(decorator=""), NORM_CASTS_NOT, ("`b` (line ", "(tried)")),
    "eager loop without a function": Sick(
        BOOST
        + CHAIN
        + """
model(x[:16])
optimizer = wrapped(K.optimizers.Adam(1e-3))

for start in 9 * list(range(0, 96, 16)):
    with tf.GradientTape() as tape:
        predicted = tf.cast(model(x[start : start + 16], training=True), tf.float32)
        loss_scaled = scaled(optimizer, tf.reduce_mean((predicted - y[start : start + 16]) ** 2))
    update(optimizer, tape, loss_scaled, model.trainable_variables)
""",
        words=("Not tried: a step of an eager loop",),
        says="not-tried",
    ),
    "a call of its own in a graph": Sick(
        BOOST.replace("    def call(", "    @tf.function\n    def call(") + CHAIN + FIT, NORM_CASTS_NOT
    ),
    "a block whose layers are its own": Sick(
        """
        class Block(L.Layer):
            def __init__(self, **given):
                super().__init__(**given)
                self.inner = L.Dense(16, name="inner")

            def call(self, x):
                return tf.tanh(self.inner(x) * 1e6)

        model = K.Sequential([L.Input((8,)), L.Dense(16, name="a"), Block(name="block"), L.Dense(1, dtype="float32")])
        """
        + textwrap.indent(FIT, " " * 8),
        {"": ("inner",)},  # what it puts out stays in float32 until the next layer casts it
    ),
    "before a recurrent layer": Sick(
        BOOST
        + """
model = K.Sequential([
    L.Input((8,)), L.Reshape((4, 2)), Boost(1e4, name="b"),
    L.Bidirectional(L.LSTM(4), name="both"), L.Dense(1, dtype="float32"),
])
"""
        + FIT,
        {"": ("b", "both")},
        ("`both` and the layer in it",),
    ),
    "the outputs": Sick(
        BOOST
        + """
model = K.Sequential([L.Input((8,)), L.Dense(16, name="dense"), L.Dense(1, name="out"), Boost(1e4, name="units")])
"""
        + FIT,
        {"": ("dense", "out", "units")},
    ),
    "a loss in float16": Sick(
        """
        def squared(y, p):
            return tf.reduce_sum(tf.square(tf.cast(y, p.dtype) - p))

        class Net(K.Sequential):
            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = squared(y, self(x, training=True))
                    loss_scaled = scaled(self.optimizer, loss)
                update(self.optimizer, tape, loss_scaled, self.trainable_variables)
                return {"loss": loss}

        y = y + 90.0
        model = Net([L.Input((8,)), L.Dense(16, activation="relu", name="a"), L.Dense(1, name="out")])
        """
        + textwrap.indent(FIT, " " * 8),
        {"": ("out",)},
        ("Compute the loss in float32", "(tried)"),
    ),
    "a dtype kept since __init__": Sick(
        """
        class Boost(L.Layer):
            def __init__(self, **given):
                super().__init__(**given)
                self.kept = self.compute_dtype

            def call(self, x):
                return tf.cast(x, self.kept) * tf.constant(6e4, self.kept) * 10.0

        """
        + textwrap.indent(CHAIN.replace("Boost(1e4, ", "Boost("), " " * 8)
        + textwrap.indent(FIT, " " * 8),
        words=("Not tried: `b` puts out float16",),
        says="not-tried",
    ),
    "not finite in any dtype": Sick(
        """
        class Ratio(L.Layer):
            def call(self, x):
                return x / (x - x)

        model = K.Sequential([L.Input((8,)), L.Dense(16), Ratio(name="ratio"), L.Dense(1, dtype="float32")])
        """
        + textwrap.indent(FIT, " " * 8),
        words=("with all layers in float32 the step is not finite either",),
        says="failed",
    ),
}
CASES = [
    pytest.param(name, keras, id=f"{name}-{keras}", marks=needs_keras(keras))
    for name, sick in SCRIPTS.items()
    for keras in sick.keras
]


def examined(path: Path, keras: str) -> tuple[Check, list[dict[str, Any]]]:
    """With the remedies of the finding that has most of them."""
    done = check(path.name, "--steps", "50", "--budget", "300", directory=path.parent, keras=keras)
    return done, max((finding["remedies"] for finding in done.report["findings"]), key=len, default=[])


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "keras"), CASES)
def test_what_is_printed_as_tried_heals_when_it_is_made(name: str, keras: str, tmp_path: Path) -> None:
    sick = SCRIPTS[name]
    path = tmp_path / "train.py"
    path.write_text(sick.text, encoding="utf-8")
    done, remedies = examined(path, keras)
    assert remedies, str(done)
    assert remedies[0]["tried"] == sick.says, remedies
    helps = " ".join(finding["help"] for finding in done.report["findings"])
    assert [word for word in sick.words if word not in helps] == [], helps
    if sick.says != "healed":
        assert "(tried)" not in helps or sick.says == "failed"
        return
    wanted = sick.layers.get(keras, sick.layers.get("", ()))
    assert tuple(layer.rsplit("/", 1)[-1] for layer in remedies[0]["layers"]) == wanted
    record = trained(edited(sick.text, remedies[0], done.report["models"]), keras, tmp_path)
    assert_heals(record)
    second = done.report["probes"][0]["second_training"]
    if "eager" in name:
        assert "an eager loop" in second["not_tried"]
        return
    assert_the_second_training_is_that_of(record, second)


def assert_the_second_training_is_that_of(record: dict[str, Any], second: dict[str, Any]) -> None:
    """Of plain Keras with the edit really made: the same scale, the same skipped steps, the same loss nearly."""
    (row,) = record["optimizers"]
    steps = second["steps"]
    assert steps == 50
    assert second["loss_scale"] == row["scale"][:steps]
    assert second["skipped_steps"] == [step for step, ok in enumerate(row["finite"][:steps]) if not ok]
    assert second["loss"] == pytest.approx(row["loss"][:steps], rel=0.02)
    assert second["verdict"] in ("healthy", "settling") and second["failing_batch_finite"] is True


def assert_heals(record: dict[str, Any]) -> None:
    assert record["raised"] is None
    (row,) = record["optimizers"]
    assert len(row["loss"]) >= 50
    assert [step for step, loss in enumerate(row["loss"][:50]) if isinstance(loss, str)] == []


def trained(text: str, keras: str, folder: Path) -> dict[str, Any]:
    """By plain Keras."""
    path = folder / "mended.py"
    path.write_text(text, encoding="utf-8")

    class Mended:
        name = "mended"

    Mended.keras = keras  # type: ignore[attr-defined]
    with PlainKeras(folder) as plain:
        return plain.record(Mended, path)  # type: ignore[arg-type]
