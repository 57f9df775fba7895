"""The remedies that mpdoctor prints, applied word for word to scripts that have the defect, and examined again.

Each row is a short script, the words of the remedy, the edit that they ask for, and the end: "healed" (the finding is
gone, the training healthy or settling) or "not healed", for edits that the words warn of or leave out."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from checking import check, needs_keras
from judging import facts_of, findings_in
from live import START

HEALTHY = ("healthy", "settling")
BOTH = ("3", "tf_keras")


@dataclass(frozen=True)
class Remedy:
    """One printed remedy: `edits` are (what stands there, what is written instead)."""

    code: str
    script: str
    words: str
    edits: tuple[tuple[str, str], ...]
    keras: tuple[str, ...] = BOTH
    live: bool = False
    ends: str = "healed"

    @property
    def sick(self) -> str:
        return START + textwrap.dedent(self.script)

    @property
    def mended(self) -> str:
        text = self.sick
        for old, new in self.edits:
            assert text.count(old) == 1, (old, text.count(old))
            text = text.replace(old, new)
        return text


FIT = """
model.compile(wrapped(K.optimizers.Adam(1e-3)), {loss})
model.fit(x, y, batch_size=16, epochs=6, verbose=0)
"""
HEAD = """
y = (y > 0).astype("float32")
model = K.Sequential([L.Input((8,)), L.Dense(16, activation="relu"), L.Dense(1, {head})])
"""
MASK = """
class Attention(L.Layer):
    def call(self, scores):
        mask = tf.cast(scores < 0, scores.dtype)
        return tf.nn.softmax(scores + mask * -1e9)

model = K.Sequential([L.Input((8,)), L.Dense(8), Attention(), L.Dense(1, dtype="float32")])
""" + FIT.format(loss='"mse"')
KEPT = MASK.replace("scores < 0", "scores > 0").replace("mask * -1e9", "(1.0 - mask) * -1e9")
DIVISOR = """
x[::4] = 0.0

class Unit(L.Layer):
    def call(self, values):
        norm = tf.reduce_max(tf.abs(values), axis=-1, keepdims=True)
        return values / (norm + 1e-8)

model = K.Sequential(
    [L.Input((8,)), L.Dense(8, use_bias=False), Unit(), L.Dense(1, dtype="float32")])
""" + FIT.format(loss='"mse"')
SHARE = DIVISOR.replace("values / (norm", "(values + 1.0) / (norm")
TENSOR = """
class Shift(L.Layer):
    def call(self, pair):
        first, second = pair
        return first + second + tf.constant([0.5])

inputs = L.Input((8,))
joined = Shift()([L.Dense(4)(inputs), L.Dense(4)(inputs)])
model = K.Model(inputs, L.Dense(1, dtype="float32")(joined))
""" + FIT.format(loss='"mse"')
NAMED = TENSOR.replace(
    "pair):\n        first, second = pair\n        return first + second +", "v):\n        return v +"
)
NAMED = NAMED.replace("Shift()([L.Dense(4)(inputs), L.Dense(4)(inputs)])", "Shift()(L.Dense(4)(inputs))")
STEP = """
class Net(K.Model):
    def __init__(self):
        super().__init__()
        self.body, self.head = L.Dense(16, activation="relu"), L.Dense(1)

    def call(self, values):
        return self.head(self.body(values))

    def train_step(self, data):
        values, labels = data
        with tf.GradientTape() as tape:
            guess = self(values, training=True)
            loss = tf.reduce_mean(tf.square(labels - guess))
            total = scaled(self.optimizer, loss)
        update(self.optimizer, tape, total, self.trainable_variables)
        return {"loss": loss}

model = Net()
""" + FIT.format(loss='"mse"').replace(', "mse"', "")
LABELS = STEP.replace("self(values, training=True)", "tf.cast(self(values, training=True), tf.float32)").replace(
    "labels = data", "labels = data[0], tf.cast(data[1], tf.float16)"
)
RAW = """
class Scale(L.Layer):
    def build(self, shape):
        self.mean = self.add_weight(name="mean", shape=(shape[-1],), initializer="zeros", trainable=False)
        self.gamma = tf.Variable(tf.ones((shape[-1],)))

    def call(self, values):
        return (values - self.mean) * self.gamma

model = K.Sequential([L.Input((8,)), L.Dense(8), Scale(), L.Dense(1, dtype="float32")])
""" + FIT.format(loss='"mse"')
SPREAD = """
wide = {"use_bias": False, "kernel_initializer": K.initializers.Constant(40.0)}
x = np.abs(x) + 3.0
model = K.Sequential(
    [
        L.Input((8,)),
        L.Dense(16, name="spread", **wide),
        L.Dense(16, name="gather", **wide),
        L.LayerNormalization(name="norm"),
        L.Dense(4, name="last"),
        L.Dense(1, dtype="float32"),
    ]
)
""" + FIT.format(loss='"mse"')
LAST = SPREAD.replace('        L.LayerNormalization(name="norm"),\n        L.Dense(4, name="last"),\n', "")
LAST = LAST.replace("L.Dense(1, dtype", 'L.LayerNormalization(dtype="float32"),\n        L.Dense(1, dtype')
LOGARITHM = """
labels = np.eye(4, dtype="float32")[rng.integers(0, 4, 96)]

def entropy(truth, p):
    return -tf.reduce_mean(tf.reduce_sum(tf.cast(truth, tf.float32) * tf.math.log(tf.cast(p, tf.float32)), -1))

large = K.initializers.RandomNormal(stddev=10.0, seed=1)
model = K.Sequential([L.Input((8,)), L.Dense(4, kernel_initializer=large, activation="softmax", name="head")])
model.compile(wrapped(K.optimizers.Adam(1e-3)), entropy)
model.fit(x, labels, batch_size=16, epochs=6, verbose=0)
"""

REMEDIES = {
    "sigmoid-head": Remedy(
        "MP201", HEAD.format(head='activation="sigmoid"') + FIT.format(loss='"binary_crossentropy"'),
        '`Dense(…, dtype="float32")`', (('activation="sigmoid"', 'activation="sigmoid", dtype="float32"'),)),
    "sigmoid-in-parts": Remedy(
        "MP201", HEAD.format(head='activation="sigmoid"') + FIT.format(loss='"binary_crossentropy"'),
        '`Dense(…)` without an activation, then `Activation("sigmoid", dtype="float32")`',
        (('L.Dense(1, activation="sigmoid")', 'L.Dense(1), L.Activation("sigmoid", dtype="float32")'),)),
    "linear-head": Remedy(
        "MP201", HEAD.format(head='activation="linear"') + FIT.format(loss='"mse"'),
        'Give the last layer `dtype="float32"`.', (('activation="linear"', 'dtype="float32"'),)),
    "mask-that-marks": Remedy("MP501", MASK, "Write `mask * -1e4`", (("mask * -1e9", "mask * -1e4"),), live=True),
    "mask-that-keeps": Remedy(
        "MP501", KEPT, "Write `(1.0 - mask) * -1e4`", (("(1.0 - mask) * -1e9", "(1.0 - mask) * -1e4"),), live=True),
    "norm-of-zero": Remedy(
        "MP502", DIVISOR, "Write `tf.math.divide_no_nan(values, norm)`",
        (("values / (norm + 1e-8)", "tf.math.divide_no_nan(values, norm)"),), live=True),
    "share-of-zero": Remedy(
        "MP502", SHARE, "Write `tf.math.divide_no_nan(values + 1.0, norm)`",
        (("(values + 1.0) / (norm + 1e-8)", "tf.math.divide_no_nan(values + 1.0, norm)"),), live=True),
    "list-of-inputs": Remedy(
        "MP202", TENSOR, "`dtype=self.compute_dtype`",
        (("tf.constant([0.5])", "tf.constant([0.5], dtype=self.compute_dtype)"),), live=True),
    "input-of-another-name": Remedy(
        "MP202", NAMED, "`dtype=v.dtype`", (("tf.constant([0.5])", "tf.constant([0.5], dtype=v.dtype)"),), live=True),
    "prediction-in-a-step": Remedy(
        "MP505", STEP, "`tf.cast(guess, tf.float32)`",
        (("labels - guess", "labels - tf.cast(guess, tf.float32)"),), live=True),
    "raw-variable": Remedy(
        "MP203", RAW, 'Write `self.add_weight(name="gamma", shape=(shape[-1],), initializer="ones")`',
        (("tf.Variable(tf.ones((shape[-1],)))",
          'self.add_weight(name="gamma", shape=(shape[-1],), initializer="ones")'),), live=True, keras=("3",)),
    "raw-variable-of-keras-2": Remedy(
        "MP203", RAW, "self.add_weight(name=…, shape=…, initializer=…)",
        (("tf.Variable(tf.ones((shape[-1],)))",
          'self.add_weight(name="gamma", shape=(shape[-1],), initializer="ones")'),), live=True, keras=("tf_keras",)),
    "stretch-of-layers": Remedy(
        "MP904", SPREAD, "finite (tried)",
        (('name="gather"', 'name="gather", dtype="float32"'), ('name="norm"', 'name="norm", dtype="float32"')),
        live=True, keras=("tf_keras",)),
    "only-float32-follows": Remedy(
        "MP904", LAST, "finite (tried)",
        (('name="gather"', 'name="gather", dtype="float32"'),), live=True),
    "one-of-a-stretch": Remedy(
        "MP904", SPREAD, "", (('name="gather"', 'name="gather", dtype="float32"'),), live=True, ends="not healed",
        keras=("tf_keras",)),
    "a-normalization-that-casts-nothing": Remedy(
        "MP904", SPREAD, "finite (tried)",
        (('name="gather"', 'name="gather", dtype="float32"'),), live=True, keras=("3",)),
    "log-of-a-half-softmax": Remedy(
        "MP907", LOGARITHM, 'dtype="float32": with it in float32 this batch',
        (('name="head"', 'name="head", dtype="float32"'),), live=True),
}  # fmt: skip
IN_SOURCE = [
    (name, keras)
    for name, remedy in REMEDIES.items()
    if remedy.code[2] != "9" and remedy.words
    for keras in remedy.keras
]
LIVE = [(name, keras) for name, remedy in REMEDIES.items() if remedy.live for keras in remedy.keras]
# In every run; the others are for those who change the words of a remedy.
SLOW = [pytest.mark.slow, pytest.mark.sampled(11)]
DEFAULT = (("share-of-zero", "tf_keras"),)


@pytest.mark.parametrize(("name", "keras"), IN_SOURCE)
def test_the_source_alone_names_the_edit_that_silences_it(name: str, keras: str) -> None:
    remedy = REMEDIES[name]
    found = [finding for finding in findings_in(facts_of(remedy.sick, keras)) if finding.code == remedy.code]
    assert [remedy.words in finding.help for finding in found] == [True], [finding.help for finding in found]
    left = findings_in(facts_of(remedy.mended, keras))
    assert not [finding.message for finding in left if finding.code == remedy.code]


@pytest.mark.parametrize(
    ("name", "keras"),
    [
        pytest.param(*case, id="-".join(case), marks=[needs_keras(case[1]), *([] if case in DEFAULT else SLOW)])
        for case in LIVE
    ],
)
def test_applied_as_printed_it_ends_as_the_table_says(name: str, keras: str, tmp_path: Path) -> None:
    remedy = REMEDIES[name]
    for stem, text in (("sick", remedy.sick), ("mended", remedy.mended)):
        (tmp_path / f"{stem}.py").write_text(text, encoding="utf-8")
    sick = check("sick.py", "--steps", "30", directory=tmp_path, keras=keras)
    said = [finding["help"] for finding in sick.report["findings"] if finding["code"] == remedy.code]
    said += [f"also {also['code']}" for f in sick.report["findings"] for also in f["also_seen"]]
    assert any(remedy.words in shown or shown == f"also {remedy.code}" for shown in said), str(sick)
    assert sick.exit_code == 1, str(sick)
    mended = check("mended.py", "--steps", "30", directory=tmp_path, keras=keras)
    codes = {finding["code"] for finding in mended.report["findings"]}
    assert "MP209" not in codes, "what was advised is no island"
    verdicts = [probe["verdict"] for probe in mended.report["probes"]]
    is_healed = remedy.code not in codes and bool(verdicts) and all(verdict in HEALTHY for verdict in verdicts)
    assert is_healed == (remedy.ends == "healed"), str(mended)


def test_the_table_holds_every_end_and_both_kinds_of_edits() -> None:
    assert {remedy.ends for remedy in REMEDIES.values()} == {"healed", "not healed"}
    assert len({remedy.code for remedy in REMEDIES.values()}) >= 8
    for remedy in REMEDIES.values():
        assert remedy.mended != remedy.sick
