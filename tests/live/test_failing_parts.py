"""What raises and is no layer, beside a real TensorFlow: named as what it is, on the line that raised, or that makes it
where a library's code did."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import check, needs_keras

pytestmark = pytest.mark.slow

PACKAGE = """\
import tensorflow as tf

K = tf.keras


class Unit(K.constraints.Constraint):
    def __call__(self, w):
        return w / (tf.norm(tf.cast(w, tf.float16)) + tf.constant(1.0))


class Small(K.regularizers.Regularizer):
    def __call__(self, w):
        return tf.reduce_sum(tf.square(w)) * tf.constant(0.1, tf.float16)


class Dice(K.metrics.Metric):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y, p, sample_weight=None):
        self.total.assign_add(tf.reduce_sum(tf.cast(y, tf.float32) * p))

    def result(self):
        return self.total


def dice_loss(y, p):
    return 1.0 - tf.reduce_sum(tf.cast(y, tf.float32) * p)
"""
START = """\
import sys

sys.path.append("lib/site-packages")
import fancynet
import numpy as np
import tensorflow as tf

K = tf.keras
K.mixed_precision.set_global_policy("mixed_float16")
x, y = np.random.rand(64, 8).astype("float32"), np.random.rand(64, 1).astype("float32")


def trained(*layers, loss="mse", metrics=(), head="float32", optimizer="adam", **fit):
    model = K.Sequential([K.Input((8,)), *layers, K.layers.Dense(1, dtype=head)])
    model.compile(optimizer, loss, metrics=list(metrics))
    model.fit(**{"x": x, "y": y, "verbose": 0, **fit})


"""
SAVED = """\
class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((8, 8)))

    @tf.function(input_signature=[tf.TensorSpec((None, 8), tf.float32)])
    def f(self, inputs):
        return inputs @ self.w


module = Module()
tf.saved_model.save(module, "saved", signatures=module.f)


class Embedding(K.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.saved = tf.saved_model.load("saved")

    def call(self, inputs):
        return self.saved.{call}


"""
SIGNATURE = SAVED.format(call='signatures["serving_default"](inputs=inputs)["output_0"]')
METRIC = """\
class Counting(K.metrics.Metric):
    def update_state(self, y, p, sample_weight=None):
        pass

    def result(self):
        return self.no_such_thing  # here


trained(metrics=[Counting(name="counting")])
"""
CONFIG = """\
class Scale(K.layers.Layer):
    def call(self, inputs):
        return inputs

    def get_config(self):
        return dict(super().get_config(), by=self.factor)  # here


model = K.Sequential([K.Input((8,)), Scale()])
model.{}
"""
OPTIMIZER = """\
class Mine(K.optimizers.SGD):
    def update_step(self, gradient, variable, learning_rate=None):
        return self.nothing  # here


trained(optimizer=Mine(0.1))
"""
RATE = """\
class Warm(K.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        return self.base * step  # here


trained(optimizer=K.optimizers.Adam(Warm()))
"""
INITIALIZER = """\
class Own(K.initializers.Initializer):
    def __call__(self, shape, dtype=None, **kwargs):
        return tf.random.normal(shape) * self.gain  # here


trained(K.layers.Dense(8, kernel_initializer=Own()))
"""
IN_GRAPH = """\
def augment(rows):
    {}  # here


def load(rows, labels):
    return tf.ensure_shape(tf.{}(augment, [rows], tf.float32), (8,)), labels


trained(x=tf.data.Dataset.from_tensor_slices((x, y)).map(load).batch(8), y=None)
"""
SAVING = """\
class Around(K.layers.Layer):
    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def call(self, inputs):
        return self.inner(inputs)

{config}
saving = K.callbacks.ModelCheckpoint("best.keras", {given})
trained(Around(K.layers.Dense(8)), callbacks=[saving])
"""
WRONG_CONFIG = """\
    def get_config(self):
        return dict(super().get_config(), units=self.units)  # here

"""
RIGHT_CONFIG = """\
    def get_config(self):
        return {"name": self.name, "dtype": self.dtype, "inner": K.layers.serialize(self.inner)}

"""
PIPELINE = """\
def parse(x, y):
    {}


data = tf.data.Dataset.from_tensor_slices((x, y)).map(parse).batch(8)
trained(x=data, y=None)
"""
# (id, Keras, the script, the code, what it says); the line is the one marked "# here"
RAISING = [
    ("lambda-callback", "3", """\
def report(epoch, logs):
    print(logs["accuracy"])  # here


trained(callbacks=[K.callbacks.LambdaCallback(on_epoch_begin=report)])
""", "MP901", "The callback `LambdaCallback` raises in on_epoch_begin, in `report`: KeyError"),
    ("helper-of-a-callback", "tf_keras", """\
def report(logs):
    print(logs["accuracy"])  # here


class Loud(K.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        report(logs)


trained(callbacks=[Loud()])
""", "MP901", "The callback `Loud` raises in on_train_batch_end, in `report`: KeyError"),
    ("result-of-a-metric", "3", METRIC, "MP901", "The metric `Counting` raises in result: AttributeError"),
    ("result-of-a-metric-in-keras-2", "tf_keras", METRIC, "MP901", "The metric `Counting` raises in result"),
    ("function-as-metric", "tf_keras", """\
def gap(y, p):
    return y.nothing  # here


trained(metrics=[gap])
""", "MP901", "The metric `gap` raises: AttributeError"),
    ("map", "3", PIPELINE.format("return x / tf.constant(2), y  # here"),
     "MP002", "The input pipeline's function `parse` raises before any training step: TypeError"),
    ("generator", "tf_keras", """\
def batches():
    yield x[:8], y[:8]
    raise RuntimeError("spoilt")  # here


trained(x=batches(), y=None)
""", "MP901", "The generator `batches`, which yields the training data, raises"),
    ("learning-rate-schedule", "3", RATE, "MP901", "The learning-rate schedule `Warm` raises in __call__: Attr"),
    ("learning-rate-schedule-in-keras-2", "tf_keras", RATE, "MP002",
     "The learning-rate schedule `Warm` raises in __call__ before any training step: AttributeError"),
    ("learning-rate-function", "3", """\
def rate():
    return 0.1 / RATE  # here


trained(optimizer=K.optimizers.SGD(rate))
""", "MP901", "The learning-rate schedule `rate` raises: NameError: name 'RATE' is not defined"),
    ("optimizer", "3", OPTIMIZER, "MP901", "The optimizer `Mine` raises in update_step: AttributeError"),
    ("optimizer-in-keras-2", "tf_keras", OPTIMIZER, "MP901", "The optimizer `Mine` raises in update_step: Attr"),
    ("checkpoint", "3", SAVING.format(config=WRONG_CONFIG, given=""), "MP901",
     "The callback `ModelCheckpoint` raises in on_epoch_end, in `Around.get_config`: "),
    ("checkpoint-without-a-configuration", "tf_keras", SAVING.format(config="", given='monitor="loss"'), "MP901",
     "The callback `ModelCheckpoint` raises in on_epoch_end, in `Around.get_config`: NotImplementedError: Layer Around "
     "was created by passing non-serializable argument values in `__init__()`, and therefore the layer must override"),
    ("initializer", "3", INITIALIZER, "MP002", "The initializer `Own` of layer `dense` raises in __call__ before any"),
    ("numpy-function", "3", IN_GRAPH.format('raise KeyError("no label 17")', "numpy_function"),
     "MP901", "The input pipeline's function `augment` raises: KeyError: 'no label 17'"),
    ("py-function", "tf_keras", IN_GRAPH.format('return np.load("rows.npy")', "py_function"),
     "MP901", "The input pipeline's function `augment` raises: FileNotFoundError: [Errno 2] No such file"),
    ("numpy-function-of-a-loss", "tf_keras", """\
def gap(a, b):
    raise ValueError("labels are out of range")  # here


def loss(a, b):
    return tf.reduce_mean(tf.square(a - b)) + tf.reduce_mean(tf.numpy_function(gap, [a, b], tf.float32))


trained(loss=loss)
""", "MP901", "The training step stops: ValueError: labels are out of range"),
    ("reshape-of-the-batch", "tf_keras", """\
class Patches(K.layers.Layer):  # here
    def call(self, inputs):
        return tf.reshape(inputs, (-1, 4))


trained(K.layers.Dense(8), Patches())
""", "MP605", "Layer `patches` (Patches) gets 32 samples and returns 64, so the loss has no label for each"),
    ("result-of-a-constraint", "tf_keras", """\
class Clipped(K.constraints.Constraint):
    def __call__(self, w):
        return tf.cast(tf.clip_by_value(w, -1.0, 1.0), "float16")


trained(K.layers.Dense(8, kernel_constraint=Clipped()))  # here
""", "MP901", "The result of the constraint `Clipped` cannot be assigned to its weight: ValueError"),
    ("caught", "3", """\
try:
    rows = np.load("rows.npy")  # here
    trained(x=rows)
except Exception as error:
    print("no training:", error)
""", "MP002", "it caught FileNotFoundError: [Errno 2] No such file or directory: 'rows.npy', in the `except` on line"),
    ("configuration", "3", CONFIG.format('save("model.keras")'),
     "MP002", "`Scale.get_config`, which `save` calls, raises before any training step: AttributeError"),
    ("configuration-of-a-clone", "tf_keras", CONFIG.format("trainable = False\nK.models.clone_model(model)"),
     "MP002", "`Scale.get_config`, which `clone_model` calls, raises"),
    ("metric-of-a-library", "3", 'trained(metrics=[fancynet.Dice(name="dice")], head=None)  # here\n',
     "MP508", "In the metric `Dice.update_state`, which is not your code, `*` is given float16 and float32."),
    ("loss-of-a-library", "tf_keras", "trained(loss=fancynet.dice_loss, head=None)\n",
     "MP505", "In the loss `dice_loss`, which is not your code, `*` is given float16 and float32."),
    ("constraint-of-a-library", "3", "trained(K.layers.Dense(8, kernel_constraint=fancynet.Unit()))  # here\n",
     "MP219", "The constraint `Unit`, which is not your code, raises: a weight is float32"),
    ("regularizer-of-a-library", "tf_keras",
     "trained(K.layers.Dense(8, kernel_regularizer=fancynet.Small()))  # here\n",
     "MP219", "The regularizer `Small`, which is not your code, raises: a weight is float32"),
    ("signature", "3", SIGNATURE + "trained(K.layers.Dense(8), Embedding())  # here\n",
     "MP219", "`Embedding` calls a SavedModel's function with float16 values, but its signature takes float32."),
    ("saved-function", "tf_keras", SAVED.format(call="f(inputs)  # here") + "trained(K.layers.Dense(8), Embedding())\n",
     "MP219", "A function with a float32 signature"),
]  # fmt: skip
HEALED = [
    ("metric-of-a-library", "3", 'trained(metrics=[fancynet.Dice(name="dice")])\n'),
    ("loss-of-a-library", "tf_keras", "trained(loss=fancynet.dice_loss)\n"),
    ("signature", "3", SIGNATURE + 'trained(K.layers.Dense(8), Embedding(dtype="float32"))\n'),
    ("saved-function", "tf_keras", SAVED.format(call="f(tf.cast(inputs, tf.float32))") + "trained(Embedding())\n"),
    ("checkpoint", "tf_keras", SAVING.format(config=RIGHT_CONFIG, given="")),
    (
        "checkpoint-of-weights",
        "3",
        SAVING.format(config=WRONG_CONFIG, given="save_weights_only=True").replace("best.keras", "best.weights.h5"),
    ),
    (
        "checkpoint-that-waits",
        "tf_keras",
        SAVING.format(config=WRONG_CONFIG, given='save_best_only=True, monitor="val_loss"'),
    ),
    ("schedule", "3", RATE.replace("self.base * step", "0.01 * K.ops.cast(step, 'float32') / 100.0")),
]


def project(folder: Path, text: str) -> None:
    package = folder / "lib" / "site-packages" / "fancynet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    (folder / "train.py").write_text(f"{START}{text}", encoding="utf-8")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("keras", "text", "code", "says"),
    [pytest.param(*row[1:], id=row[0], marks=needs_keras(row[1])) for row in RAISING],
)
def test_it_is_named_as_what_it_is(tmp_path: Path, keras: str, text: str, code: str, says: str) -> None:
    project(tmp_path, text)
    done = check("train.py", directory=tmp_path, keras=keras)
    finding = done.finding(code)
    assert says in finding["message"]
    assert {"MP901", "MP002", "MP508", "MP505", "MP509", "MP219", "MP605"} & set(done.codes()) == {code}
    marked = [number for number, line in enumerate(f"{START}{text}".split("\n"), 1) if line.endswith("# here")]
    assert not marked or finding["line"] == marked[0]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("keras", "text"), [pytest.param(*row[1:], id=row[0], marks=needs_keras(row[1])) for row in HEALED]
)
def test_the_remedy_heals(tmp_path: Path, keras: str, text: str) -> None:
    project(tmp_path, text)
    done = check("train.py", directory=tmp_path, keras=keras)
    assert not {"MP901", "MP002", "MP508", "MP505", "MP219"} & set(done.codes())
    assert done.report["probes"][0]["steps"] > 0


OWN_WRAPPER = """\
class Static(K.mixed_precision.LossScaleOptimizer):
    def __init__(self, inner, scale):
        super().__init__(inner, dynamic=False, initial_scale=scale)


trained(optimizer=Static(K.optimizers.SGD(0.1), 128.0))
"""


@needs_keras("3")
def test_a_method_is_named_as_the_user_knows_it(tmp_path: Path) -> None:
    """Not by the name of the hook that stands around the method of Keras."""
    project(tmp_path, OWN_WRAPPER)
    finding = check("train.py", directory=tmp_path, keras="3").finding("MP310")
    assert any("The optimizer `Static` raises in __init__ before any" in also["text"] for also in finding["also_seen"])
