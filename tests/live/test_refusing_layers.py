"""Layers of an installed package that raise on 16-bit input, beside a real TensorFlow: named where the program makes
them, with a remedy that was tried and that heals."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import Check, check, needs_keras
from test_mended_programs import mend

pytestmark = pytest.mark.slow

PACKAGE = """\
import tensorflow as tf


class Shift(tf.keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.constant(1.0)


class Plain(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()

    def call(self, inputs):
        return inputs + tf.constant(1.0)


class Spectrum(tf.keras.layers.Layer):
    def __init__(self, size, **kwargs):
        super().__init__(**kwargs)
        self.size = size

    def call(self, inputs):
        return tf.abs(tf.signal.rfft(inputs, fft_length=[self.size]))


class Encoder(tf.keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.first, self.shift = tf.keras.layers.Dense(8), Shift()

    def call(self, inputs):
        return self.shift(self.first(inputs))


class Scaled(tf.keras.layers.Wrapper):
    def build(self, shape):
        super().build(shape)
        self.gain = self.add_weight(name="gain", shape=(8,), initializer="ones")

    def call(self, inputs):
        return tf.multiply(self.layer(inputs), tf.cast(self.gain, "float32"))


class Counting(tf.keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.constant(1)  # which no dtype of a layer mends


class Scores(tf.keras.layers.Layer):
    def call(self, queries, candidates, factor=1.0):
        return factor * tf.linalg.matmul(queries, candidates, transpose_b=True)


class Retrieval(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.scores = Scores()

    def call(self, queries, candidates):
        return self.scores(queries, candidates)


class Applying(tf.keras.layers.Layer):
    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        self.function = function

    def call(self, inputs):
        return self.function(inputs)


class Late(tf.keras.layers.Layer):
    def call(self, inputs):
        return Shift(name="late")(inputs)


class Copied(tf.keras.layers.Dense):
    def build(self, shape):
        super().build(shape)
        self.copy = tf.Variable(self.kernel.read_value(), trainable=False)  # 16-bit under a mixed policy

    def call(self, inputs):
        return tf.matmul(inputs, self.kernel - self.copy) + tf.constant(1.0)


def backbone(width):
    inputs = tf.keras.Input((width,))
    return tf.keras.Model(inputs, Shift()(tf.keras.layers.Dense(8)(inputs)))
"""
START = """\
import sys

sys.path.append("lib/site-packages")
import fancynet
import numpy as np
import tensorflow as tf

x, y = np.random.rand(64, 8).astype("float32"), np.random.rand(64, 1).astype("float32")
tf.keras.mixed_precision.set_global_policy("mixed_float16")


def shifted(inputs):
    return inputs + tf.constant(1.0)


first = tf.keras.layers.Dense(8)
"""
SEQUENTIAL = """
model = tf.keras.Sequential([tf.keras.Input((8,)), first, layer, tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(x, y, verbose=0)
"""
SUBCLASSED = """

class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = first, layer, tf.keras.layers.Dense(1, dtype="float32")

    def call(self, inputs):
        return self.head(self.second(self.first(inputs)))


model = Net()
model.compile("adam", "mse")
model.fit(x, y, verbose=0)
"""
TWO_TOWERS = """

class Towers(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.one, self.other, self.score = first, tf.keras.layers.Dense(8, dtype="float32"), layer

    def call(self, inputs):
        left, right = self.one(inputs), self.other(inputs)
        return tf.cast(tf.reduce_sum({called}, axis=1, keepdims=True), tf.float32)


model = Towers()
model.compile("adam", "mse")
model.fit(x, y, verbose=0)
"""
# (how the layer of two inputs is called, which of them stay float32)
TWO_INPUTS = [
    ("Scores(left, right)", "`candidates` stays"),
    ("Scores(right, candidates=right, factor=2.0)", "`candidates` stays"),
    ("Retrieval(left, right)", "`candidates` stays"),
]
FLOAT32 = """\
tf.keras.mixed_precision.set_global_policy("float32")
{}
tf.keras.mixed_precision.set_global_policy("mixed_float16")
"""
# (how the layer is made, how it is made as the help says, what the message and the help say)
REFUSING = [
    ("layer = fancynet.Shift()", 'layer = fancynet.Shift(dtype="float32")', '`Shift(…, dtype="float32")`'),
    ("layer = fancynet.Spectrum(8)", 'layer = fancynet.Spectrum(8, dtype="float32")', "RFFT"),
    ("layer = fancynet.Plain()", FLOAT32.format("layer = fancynet.Plain()"), "`Plain` takes no dtype"),
    (
        "layer = fancynet.Scaled(tf.keras.layers.Dense(8))",
        FLOAT32.format("layer = fancynet.Scaled(tf.keras.layers.Dense(8))"),
        'Make it and the layers in it with `dtype="float32"`',
    ),
    ("layer = fancynet.Encoder()", FLOAT32.format("layer = fancynet.Encoder()"), "Here the library makes `Shift`"),
    ("layer = fancynet.backbone(8)", FLOAT32.format("layer = fancynet.backbone(8)"), "Here `backbone` makes `Shift`"),
]
OTHERWISE = [
    "layer = fancynet.Counting()",
    "layer = fancynet.Applying(shifted)",
    "layer = tf.keras.layers.Lambda(shifted)",
]
IDS = ["shift", "spectrum", "plain", "wrapper", "encoder", "backbone"]


def write_program(folder: Path, text: str) -> None:
    """Write the package, and train.py with this text."""
    package = folder / "lib" / "site-packages" / "fancynet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    (folder / "train.py").write_text(text, encoding="utf-8")


def checked(folder: Path, text: str, keras: str, *arguments: str) -> Check:
    write_program(folder, text)
    return check("train.py", *arguments, directory=folder, keras=keras)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("keras", ["3", "tf_keras"])
@pytest.mark.parametrize("model", [SEQUENTIAL, SUBCLASSED], ids=["sequential", "subclassed"])
@pytest.mark.parametrize(("made", "mended", "words"), REFUSING, ids=IDS)
def test_it_is_named_where_it_is_made(
    tmp_path: Path, made: str, mended: str, words: str, model: str, keras: str
) -> None:
    done = checked(tmp_path, f"{START}{made}\n{model}", keras)
    finding = done.finding("MP219")
    assert not {"MP002", "MP901", "MP211"} & set(done.codes())
    assert "none in float32 (tried)" in finding["message"]
    assert words in f"{finding['message']} {finding['help']}"
    assert finding["line"] == START.count("\n") + 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("keras", ["3", "tf_keras"])
@pytest.mark.parametrize(("made", "mended", "words"), REFUSING, ids=IDS)
def test_the_remedy_heals(tmp_path: Path, made: str, mended: str, words: str, keras: str) -> None:
    done = checked(tmp_path, f"{START}{mended}\n{SEQUENTIAL}", keras)
    assert not {"MP219", "MP901", "MP002"} & set(done.codes())
    assert done.report["probes"][0]["steps"] > 0


@pytest.mark.parametrize("keras", ["3", "tf_keras"])
@pytest.mark.parametrize("model", [SEQUENTIAL, SUBCLASSED], ids=["sequential", "subclassed"])
def test_one_that_takes_no_dtype_is_mended_by_the_policy(tmp_path: Path, model: str, keras: str) -> None:
    write_program(tmp_path, f"{START}layer = fancynet.Plain()\n{model}")
    done = mend("train.py", "--steps", "10", "--write", "--output-format", "json", directory=tmp_path, keras=keras)
    assert done.report["mended"]
    assert done.titles() == ["Make the layer under the policy float32"]
    assert FLOAT32.format("layer = fancynet.Plain()") in (tmp_path / "train.py").read_text(encoding="utf-8")


@needs_keras("tf_keras")
@pytest.mark.parametrize(("called", "stay"), TWO_INPUTS)
def test_inputs_that_keras_2_does_not_cast_are_named(tmp_path: Path, called: str, stay: str) -> None:
    made = called.partition("(")[0]
    text = f"{START}layer = fancynet.{made}()\n{TWO_TOWERS.format(called=called.replace(made, 'self.score'))}"
    done = checked(tmp_path, text, "tf_keras")
    finding = done.finding("MP217")
    assert not {"MP002", "MP901", "MP219", "MP202"} & set(done.codes())
    assert f"{stay} float32, because Keras 2 casts only the first input, `queries`, to float16" in finding["message"]
    assert finding["line"] == START.count("\n") + 1
    assert "Not tried" not in finding["help"]
    mended = (
        text.replace(f"{made}()", f'{made}(dtype="float32")')
        if made == "Scores"
        else text.replace(f"layer = fancynet.{made}()", FLOAT32.format(f"layer = fancynet.{made}()").rstrip("\n"))
    )
    healed = checked(tmp_path / "mended", mended, "tf_keras")
    assert not {"MP217", "MP901", "MP002"} & set(healed.codes())
    assert healed.report["probes"][0]["steps"] > 0


@pytest.mark.parametrize("keras", ["3", "tf_keras"])
def test_a_layer_that_a_librarys_call_makes_gets_its_dtype_from_no_line(tmp_path: Path, keras: str) -> None:
    text = f"{START}layer = fancynet.Late()\n{SEQUENTIAL}"
    finding = checked(tmp_path, text, keras).finding("MP219")
    assert "The library makes `Shift` anew in each call" in finding["help"]
    mended = (
        text.replace('policy("mixed_float16")', 'policy("float32")')
        .replace("first = tf.keras.layers.Dense(8)", 'first = tf.keras.layers.Dense(8, dtype="mixed_float16")')
        .replace('"adam"', "tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())")
    )
    healed = checked(tmp_path / "mended", mended, keras)
    assert not healed.codes()
    assert healed.report["probes"][0]["steps"] > 0


@needs_keras("tf_keras")
def test_a_layer_that_holds_16_bit_variables_cannot_be_tried_as_it_is(tmp_path: Path) -> None:
    text = f"{START}layer = fancynet.Copied(8)\n{SEQUENTIAL}"
    finding = checked(tmp_path, text, "tf_keras").finding("MP219")
    assert finding["line"] == START.count("\n") + 1
    assert '`Copied(…, dtype="float32")`' in finding["help"]
    assert "(Not tried.)" in finding["help"]
    healed = checked(tmp_path / "mended", text.replace("Copied(8)", 'Copied(8, dtype="float32")'), "tf_keras")
    assert not {"MP219", "MP901", "MP002"} & set(healed.codes())
    assert healed.report["probes"][0]["steps"] > 0


@pytest.mark.parametrize("keras", ["3", "tf_keras"])
@pytest.mark.parametrize("made", OTHERWISE, ids=["whole-numbers", "function-of-the-program", "lambda"])
def test_what_is_not_the_librarys_is_not_said_to_be(tmp_path: Path, made: str, keras: str) -> None:
    done = checked(tmp_path, f"{START}{made}\n{SEQUENTIAL}", keras)
    assert set(done.codes()) & {"MP002", "MP901", "MP202"}
    assert "MP219" not in set(done.codes())


def test_under_a_forced_policy_it_is_told_and_passed(tmp_path: Path) -> None:
    text = f"{START}layer = fancynet.Shift()\n{SEQUENTIAL}".replace(
        'tf.keras.mixed_precision.set_global_policy("mixed_float16")\n', ""
    )
    done = checked(tmp_path, text, "3", "--policy", "mixed_float16")
    assert set(done.codes()) & {"MP219", "MP002", "MP901"} == {"MP219"}
    assert done.report["probes"][0]["steps"] > 0
