"""What rules say about hand-written facts of live models, and whether their tables agree with the TensorFlow
at hand."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checking import needs_keras
from judging import KERASES, facts_of, findings_in

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ArrayFacts, CallFacts, ModelFacts, OptimizerFacts, WriteFacts
from mpdoctor.finding import Finding
from mpdoctor.knowledge.api_history import IN_MIXED_PRECISION
from mpdoctor.knowledge.wrapper_delegation import CLASSIC, DEFAULTS, KERAS3, LOST, MISSING, NEW, OWN
from mpdoctor.program.events import Call
from mpdoctor.rules.registry import findings_from_facts

SUPPORT = Path(__file__).parents[1] / "support"
LINE = Location("train.py", 7)
FIT = CallFacts("fit", Location("train.py", 9))


def layer(path: str, policy: str = "mixed_float16", **more: object) -> LayerFacts:
    compute = policy.removeprefix("mixed_")
    variable = "float32" if policy.startswith("mixed_") else policy
    facts: dict[str, object] = {
        "path": path,
        "class_name": "Dense",
        "policy": policy,
        "compute_dtype": compute,
        "variable_dtype": variable,
        "output_dtypes": (compute,),
        "variables": ((variable, 40, True), (variable, 10, True)),
        "made_at": LINE,
    }
    return LayerFacts(**{**facts, **more})  # type: ignore[arg-type]


def model(*layers: LayerFacts, keras: str = "3", **more: object) -> ModelFacts:
    facts: dict[str, object] = {
        "id": "m",
        "name": "model",
        "class_name": "Sequential",
        "policy": "mixed_float16",
        "keras": KERASES[keras],
        "layers": layers,
        "compiled": True,
        "call": FIT,
        "global_policy": "mixed_float16",
        "policy_set": True,
    }
    return ModelFacts(**{**facts, **more})  # type: ignore[arg-type]


def wrapper(*inside: OptimizerFacts, **more: object) -> tuple[OptimizerFacts, ...]:
    facts: dict[str, object] = {"is_wrapper": True, "dynamic": True, "initial_scale": "32768.0", "made_at": LINE}
    outer = OptimizerFacts("LossScaleOptimizer", "keras", **{**facts, **more})  # type: ignore[arg-type]
    return (outer, *(inside or (OptimizerFacts("Adam", "keras"),)))


HEAD = layer("head", "float32", is_output=True)
HALF_HEAD = layer("head", is_output=True)
BODY = layer("body")
SCALED = {"optimizer": wrapper()}
WRITTEN = WriteFacts("epsilon", "0.0001", "1e-07", False, LINE)


def said(facts: ModelFacts) -> list[Finding]:
    found = []
    for finding in findings_from_facts("in_model", facts, facts.keras, lambda rule: True):
        assert isinstance(finding, Finding), finding
        found.append(finding)
    return found


@pytest.mark.parametrize(
    "facts",
    [
        model(BODY, HEAD, **SCALED),
        model(BODY, HALF_HEAD, compiled=False, call=CallFacts("none"), **SCALED),
        model(BODY, HALF_HEAD, compiled=False, call=CallFacts("loop"), **SCALED),
        model(BODY, layer("gate", "float32"), HEAD, **SCALED),
        model(layer("asked", "float32", given_dtype=True), BODY, HEAD, **SCALED),
        model(layer("asked", "float32", given_dtype=True), layer("asked/query", "float32"), BODY, HEAD, **SCALED),
        model(layer("norm", "float32", class_name="BatchNormalization"), BODY, HEAD, **SCALED),
        model(layer("scale", "float32", class_name="Rescaling", variables=()), BODY, HEAD, **SCALED),
        model(layer("ids", "float32", class_name="Embedding"), BODY, HEAD, **SCALED),
        model(BODY, layer("tokens", "float32", class_name="StringLookup", floating=False), HEAD, **SCALED),
        model(BODY, layer("own", is_output=True, own_class=True, output_dtypes=()), **SCALED),
        model(layer("body", "float32"), HEAD, policy="float32", global_policy="float32"),
        model(BODY, HEAD, optimizer=wrapper(writes=(WriteFacts("learning_rate", "0.1", "0.1", True, LINE),))),
        model(
            BODY, HEAD, optimizer=wrapper(initial_scale="1024", growth_interval="None", dynamic=False), keras="tf_keras"
        ),
        model(BODY, HEAD, optimizer=wrapper(OptimizerFacts("Mine", "train", own_class=True))),
        model(BODY, HEAD, data=(ArrayFacts("features", "", "numpy array", "float32", (8, 4)),), **SCALED),
        model(
            layer("words", "float32", class_name="TextVectorization", floating=False, variables=()),
            BODY,
            HEAD,
            data=(ArrayFacts("features", "", "numpy array", "object", (8,), "str"),),
            **SCALED,
        ),
        model(
            layer("body", "float32"),
            HEAD,
            policy="float32",
            global_policy="float32",
            data=(ArrayFacts("features", "", "numpy array", "float16", (8, 4)),),
        ),
        model(layer("body", "float16", variables=()), HEAD, **SCALED),
        model(
            BODY,
            HEAD,
            optimizer=wrapper(OptimizerFacts("Mine", "train", own_class=True, overridden=("apply", "apply_gradients"))),
        ),
        model(
            BODY,
            HEAD,
            keras="tf_keras",
            optimizer=wrapper(OptimizerFacts("Mine", "train", own_class=True, overridden=("apply_gradients",))),
        ),
        model(
            layer("body", "float32", output_dtypes=("float16",)), policy="float32", global_policy="float32", **SCALED
        ),
        model(
            layer("body", "float32"),
            policy="float32",
            global_policy="float32",
            compiled=False,
            call=CallFacts("none"),
            **SCALED,
        ),
    ],
)
def test_a_right_model_gives_no_finding(facts: ModelFacts) -> None:
    assert said(facts) == []


@pytest.mark.parametrize(
    ("codes", "words", "facts"),
    [
        (["MP201"], "head (Dense) in float16", model(BODY, HALF_HEAD, **SCALED)),
        (
            ["MP201"],
            "in bfloat16",
            model(BODY, layer("head", "mixed_bfloat16", is_output=True), policy="mixed_bfloat16"),
        ),
        (["MP107", "MP201"], "body (Dense) are float16", model(layer("body", "float16"), HALF_HEAD)),
        (
            ["MP107"],
            "The weights of first and second (Dense) are float16",
            model(
                layer("first", "float16", made_at=None),
                layer("second", "float16", made_at=None),
                HEAD,
                policy="float16",
            ),
        ),
        (
            ["MP107"],
            "The weights of body and middle",
            model(
                layer("body", "float16"), layer("middle", "float16"), HEAD, policy="float16", global_policy="float16"
            ),
        ),
        (["MP209"], "body (Dense, 50 weights)", model(layer("body", "float32"), layer("next"), HEAD, **SCALED)),
        (
            ["MP209"],
            "inside a model that computes in bfloat16",
            model(layer("body", "float32"), layer("next", "mixed_bfloat16"), layer("last"), HEAD, **SCALED),
        ),
        (
            ["MP209"],
            "base (Sequential, 50 weights)",
            model(
                layer("base", "float32", class_name="Sequential", is_model=True, variables=()),
                layer("base/dense", "float32"),
                layer("next"),
                HEAD,
                **SCALED,
            ),
        ),
        (
            ["MP204"],
            "scale (Scale) has a float16 weight under mixed_float16",
            model(
                layer("scale", class_name="Scale", variables=(("float16", 4, True),), own_class=True), HEAD, **SCALED
            ),
        ),
        (
            ["MP208"],
            "head/dense (Dense) follows the global policy mixed_float16, but head (Head), which holds it, has the "
            "policy float32",
            model(
                BODY,
                layer("head", "float32", class_name="Head", own_class=True, variables=(), output_dtypes=()),
                layer("head/dense"),
                policy_set=True,
                **SCALED,
            ),
        ),
        (
            ["MP210"],
            "Rescaling computes in float16",
            model(layer("scale", class_name="Rescaling", variables=()), BODY, HEAD, policy_set=True, **SCALED),
        ),
        (["MP302"], "Adam trains with 1e-07", model(BODY, HEAD, optimizer=wrapper(writes=(WRITTEN,)))),
        (
            ["MP304"],
            "Mine lacks `update_step`",
            model(
                BODY, HEAD, optimizer=wrapper(OptimizerFacts("Mine", "train", own_class=True, missing=("update_step",)))
            ),
        ),
        (
            ["MP304"],
            "no optimizer of Keras 3.15.1",
            model(BODY, HEAD, optimizer=wrapper(OptimizerFacts("Duck", "train", is_keras_optimizer=False))),
        ),
        (
            ["MP305"],
            "Mine overrides `apply_gradients`, which a LossScaleOptimizer never calls",
            model(
                BODY,
                HEAD,
                optimizer=wrapper(OptimizerFacts("Mine", "train", own_class=True, overridden=("apply_gradients",))),
            ),
        ),
        (
            ["MP305"],
            "Mine overrides `minimize`",
            model(
                BODY,
                HEAD,
                keras="tf_keras",
                optimizer=wrapper(OptimizerFacts("Mine", "train", own_class=True, overridden=("minimize",))),
            ),
        ),
        (
            ["MP309"],
            "every layer computes in bfloat16",
            model(layer("body", "mixed_bfloat16"), policy="mixed_bfloat16", **SCALED),
        ),
        (
            ["MP309"],
            "every layer computes in float32",
            model(layer("body", "float32"), HEAD, policy="float32", global_policy="float32", **SCALED),
        ),
        (["MP306"], "32768 times too small", model(BODY, HEAD, optimizer=(*wrapper()[:1], *wrapper()))),
        (["MP310"], "`initial_scale` is 0", model(BODY, HEAD, optimizer=wrapper(initial_scale="0.0"))),
        (["MP310"], "the string 'dynamic'", model(BODY, HEAD, optimizer=wrapper(initial_scale="'dynamic'"))),
        (
            ["MP602"],
            "object array that holds str",
            model(BODY, HEAD, data=(ArrayFacts("features", "", "numpy array", "object", (8, 2), "str"),), **SCALED),
        ),
        (
            ["MP602"],
            "labels 'kind' are strings",
            model(BODY, HEAD, data=(ArrayFacts("labels", "kind", "numpy array", "<U3", (8,)),), **SCALED),
        ),
        (
            ["MP603"],
            "features and labels are float16",
            model(
                BODY,
                HEAD,
                data=(
                    ArrayFacts("features", "", "tensor", "float16", (8, 2)),
                    ArrayFacts("labels", "", "tensor", "float16", (8,)),
                ),
                **SCALED,
            ),
        ),
    ],
)
def test_a_defect_of_a_live_model_is_named(codes: list[str], words: str, facts: ModelFacts) -> None:
    findings = said(facts)
    assert [finding.code for finding in findings] == codes
    assert any(words in finding.message for finding in findings), [finding.message for finding in findings]
    assert all(finding.help for finding in findings)


REQUIRED = """import tensorflow as tf


class Mine(tf.keras.optimizers.SGD):
    def __init__(self, warm, **kwargs):
        super().__init__(0.1, **kwargs)
        self.warm = warm

    def get_config(self):
        return super().get_config()


optimizer = tf.keras.mixed_precision.LossScaleOptimizer(Mine(0.5))
"""
LOOKED_UP = """import tensorflow as tf
tf.keras.mixed_precision.set_global_policy("mixed_float16")
class Words(tf.keras.layers.Layer):
    def build(self, shape):
        self.table = self.add_weight(name="table", shape=(100, 8))
    def call(self, ids):
        mask = tf.cast(tf.not_equal(ids, 0), tf.float32)
        return tf.gather(self.table, tf.cast(ids, tf.int32)) * mask[..., None]
"""
PHASES = """import tensorflow as tf
tf.keras.mixed_precision.set_global_policy("mixed_float16")
class Phases(tf.keras.layers.Layer):
    def build(self, shape):
        self.parts = self.add_weight(name="parts", shape=(2, 8))
    def call(self, inputs):
        turned = tf.complex(self.parts[0], self.parts[1])
        return inputs * tf.cast(tf.abs(turned), inputs.dtype)
"""
UNDER_OPTIMIZER = """import keras
keras.config.set_dtype_policy("bfloat16")
model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1, dtype="float32")])
model.compile({}, "mse")
model.fit(features, labels)
"""
LAST_BIT = ": updates smaller than a weight's last bit are lost."
# (optimizer, how the sentence about bfloat16 weights ends)
EFFECTS_IN_BFLOAT16 = [
    ("'adam'", ", and Adam never changes such weights: its beta_2 of 0.999 is 1 in bfloat16."),
    ("'AdamW'", ", and AdamW never changes such weights: its beta_2 of 0.999 is 1 in bfloat16."),
    ("keras.optimizers.Nadam(1e-3)", ", and Nadam makes such weights NaN: its beta_2 of 0.999 is 1 in bfloat16."),
    (
        "keras.optimizers.Lamb(beta_2=0.9999)",
        ", and Lamb never changes such weights: its beta_2 of 0.9999 is 1 in bfloat16.",
    ),
    ("keras.optimizers.Adam(1e-3, beta_2=0.99)", LAST_BIT),
    ("keras.optimizers.Adam(1e-3, 0.9, 0.99)", LAST_BIT),
    ("keras.optimizers.Adam(beta_2=asked())", LAST_BIT),
    ("'sgd'", LAST_BIT),
]
NOISY = """import tensorflow as tf
tf.keras.mixed_precision.set_global_policy("mixed_float16")
class Noisy(tf.keras.layers.Layer):
    def call(self, inputs):
        return inputs * tf.random.normal(
            tf.shape(inputs), mean=1.0, stddev=0.1
        )
"""
CAST_BY_NAME = """import tensorflow as tf
tf.keras.mixed_precision.set_global_policy("mixed_float16")
class Scaled(tf.keras.layers.Layer):
    def call(self, inputs):
        return {result}
"""
BY_NAME = "Cast to the dtype in which the layer computes: `self.compute_dtype` instead of `tf.float16`."
CAST_IN_A_LOSS = """import tensorflow as tf
tf.keras.mixed_precision.set_global_policy("mixed_float16")
def loss(wanted, guessed):
    return tf.reduce_mean(tf.square(tf.cast(wanted, tf.float16) - guessed))
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
model.compile("adam", loss)
model.fit(x, y)
"""
CAST_FEATURES = """import tensorflow as tf
tf.keras.mixed_precision.set_global_policy("mixed_{0}")
x = tf.cast(incomes, tf.{0})
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(x, y)
"""
ANNOTATED = """import tensorflow as tf
tf.keras.mixed_precision.set_global_policy("mixed_float16")
class Spectra(tf.keras.layers.Layer):
    def call(self, waves: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.abs(tf.signal.rfft(waves)), waves.dtype)
"""
RESHAPED = """
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")

class Index(tf.keras.layers.Layer):
    def __init__(self, values):
        super().__init__()
        self.values = tf.Variable(values, trainable=False, dtype=tf.float32, validate_shape=False, shape=[None, 8])
    def call(self, inputs):
        return tf.matmul(inputs, self.values, transpose_b=True)
"""
LEGACY_OPTIMIZER = """
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1, dtype="float32")])
optimizer = tf.keras.optimizers.legacy.SGD(0.1)


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
"""
KEPT = """import keras
import tensorflow as tf

scaler = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def step(model, sums, x, y):
    with tf.GradientTape() as tape:
        loss = scaler.scale_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = tape.gradient(loss, model.trainable_variables)
    for total, gradient in zip(sums, gradients):
        total.assign_add(gradient)
    scaler.apply(gradients, model.trainable_variables)
"""
GAN = """import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
critic = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
first = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
second = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())


def step(real):
    with tf.GradientTape() as tape:
        loss = first.scale_loss(-tf.reduce_mean(critic(real)))
    gradients = tape.gradient(loss, critic.trainable_variables)
    second.apply_gradients(zip(gradients, critic.trainable_variables))
"""


@pytest.mark.parametrize(
    ("keras", "text", "message", "help"),
    [
        (
            "3",
            "import keras\nopt = "
            "keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())\nopt.epsilon = 1e-4\n",
            "`opt.epsilon = 1e-4` only sets an attribute of the LossScaleOptimizer; Adam keeps 1e-07.",
            "Set it on the inner optimizer: `opt.inner_optimizer.epsilon = 1e-4`.",
        ),
        (
            "3",
            "import keras\nopt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())\n"
            "setattr(opt, 'epsilon', 1e-4)\n",
            "`opt.epsilon = 1e-4` only sets an attribute of the LossScaleOptimizer; Adam keeps 1e-07.",
            "Set it on the inner optimizer: `opt.inner_optimizer.epsilon = 1e-4`.",
        ),
        (
            "3",
            "import keras\nopt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())\n"
            "opt.epsilon = 1e-4\nprint(opt.epsilon)\n",
            "`opt.epsilon = 1e-4` only sets an attribute of the LossScaleOptimizer; Adam keeps 1e-07.",
            "Set it on the inner optimizer: `opt.inner_optimizer.epsilon = 1e-4`. Read it there as well (line 4).",
        ),
        (
            "3",
            "import keras\n\n\nclass Slower(keras.callbacks.Callback):\n"
            "    def on_epoch_end(self, epoch, logs=None):\n        self.model.optimizer.momentum = 0.5\n\n\n"
            "keras.mixed_precision.set_global_policy('mixed_float16')\n"
            "opt = keras.optimizers.SGD(0.1, 0.9)\n"
            "model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype='float32')])\n"
            "model.compile(opt, 'mse')\n"
            "model.fit(x, y, callbacks=[Slower()])\n",
            "`self.model.optimizer.momentum = 0.5` only sets an attribute of the LossScaleOptimizer; SGD keeps 0.9.",
            "Set it on the inner optimizer: `self.model.optimizer.inner_optimizer.momentum = 0.5`. Then call "
            "`self.model.make_train_function(force=True)`: the step that is compiled keeps the old number.",
        ),
        (
            "3",
            "import keras\n\n\nclass Slower(keras.callbacks.Callback):\n"
            "    def on_train_batch_begin(self, batch, logs=None):\n        self.model.optimizer.momentum = 0.5\n\n\n"
            "keras.mixed_precision.set_global_policy('mixed_float16')\n"
            "opt = keras.optimizers.SGD(0.1, 0.9)\n"
            "model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype='float32')])\n"
            "model.compile(opt, 'mse')\n"
            "model.fit(x, y, callbacks=[Slower()])\n",
            "`self.model.optimizer.momentum = 0.5` only sets an attribute of the LossScaleOptimizer; SGD keeps 0.9.",
            "Set it on the inner optimizer: `self.model.optimizer.inner_optimizer.momentum = 0.5`. Do that in "
            "`on_train_begin`: the step that is compiled keeps the old number, and is not to be compiled anew at every "
            "batch.",
        ),
        (
            "3",
            "import keras\n\n\nclass Slower(keras.callbacks.Callback):\n"
            "    def on_train_batch_end(self, batch, logs=None):\n        self.model.optimizer.momentum = 1 / batch\n\n"
            "keras.mixed_precision.set_global_policy('mixed_float16')\n"
            "opt = keras.optimizers.SGD(0.1, 0.9)\n"
            "model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype='float32')])\n"
            "model.compile(opt, 'mse')\n"
            "model.fit(x, y, callbacks=[Slower()])\n",
            "`self.model.optimizer.momentum = 1 / batch` only sets an attribute of the LossScaleOptimizer; SGD keeps "
            "0.9.",
            "Set it on the inner optimizer: `self.model.optimizer.inner_optimizer.momentum = 1 / batch`. The step that "
            "is compiled keeps the old number: where it changes, and not at every batch, call "
            "`self.model.make_train_function(force=True)`, which compiles the step anew.",
        ),
        (
            "tf_keras",
            "import tensorflow as tf\nopt = tf.keras.mixed_precision.LossScaleOptimizer('adam')\n",
            "LossScaleOptimizer needs an optimizer, and is given the string 'adam'; this line raises.",
            "Make the optimizer first: `LossScaleOptimizer(keras.optimizers.Adam())`.",
        ),
        (
            "3",
            "import tensorflow as tf\ntf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())\n",
            "`tf.mixed_precision.LossScaleOptimizer` does not exist: no version of TensorFlow or Keras ever had it. "
            "This line raises AttributeError.",
            "Write `tf.keras.mixed_precision.LossScaleOptimizer`.",
        ),
        (
            "tf_keras",
            'import tensorflow as tf\ntf.keras.mixed_precision.set_policy("mixed_float16")\n',
            "`tf.keras.mixed_precision.set_policy` does not exist: no version of TensorFlow or Keras ever had it. This "
            "line raises AttributeError.",
            "Write `tf.keras.mixed_precision.set_global_policy`.",
        ),
        (
            "3",
            "from keras import mixed_precision\nprint(mixed_precision.get_global_policy().name)\n",
            "`mixed_precision.get_global_policy` does not exist: no version of TensorFlow or Keras ever had it. This "
            "line raises AttributeError.",
            "Write `mixed_precision.global_policy`.",
        ),
        (
            "tf_keras",
            REQUIRED.replace("warm, ", "warm=2.0, "),
            "Mine does not save `warm` in its `get_config`: after saving and loading, or cloning, it has its default "
            "again.",
            'In `Mine.get_config` return `{**super().get_config(), "warm": self.warm}`.',
        ),
        (
            "tf_keras",
            REQUIRED,
            "Mine does not save `warm` in its `get_config`: loading a saved model, or cloning the optimizer, raises "
            "TypeError, because `warm` has no default.",
            'In `Mine.get_config` return `{**super().get_config(), "warm": self.warm}`.',
        ),
        (
            "3",
            "import keras\nopt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1, "
            "loss_scale_factor=1024.0))\n",
            "SGD loses its `loss_scale_factor` of 1024.0: the LossScaleOptimizer sets it to None and uses its own "
            "dynamic scale.",
            "Drop `loss_scale_factor` and give the wrapper `initial_scale=1024.0`: its dynamic scale skips a step "
            "that overflows and is then lowered.",
        ),
        (
            "3",
            GAN,
            "The loss was scaled by `first`, but `second.apply_gradients` divides by the scale of `second`: the "
            "gradients are wrong by the ratio of the two scales.",
            "Scale each loss by the optimizer that applies its gradients: `second.scale_loss(loss)`.",
        ),
        (
            "3",
            "import keras\nopt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1), "
            "initial_scale=-1024.0)\n",
            "`initial_scale` is -1024: it changes the sign of the loss and then of the gradients, so it does what 1024 "
            "does.",
            "Leave it out (the default is 2**15), or give a positive number.",
        ),
        (
            "3",
            KEPT,
            "`assign_add` adds up gradients that are still multiplied by the loss scale, and `apply` may change the "
            "scale after each of them: the sum mixes several scales, and an overflow stays in it.",
            "Divide them by `scaler.dynamic_scale` before adding them up. It exists once the optimizer is built, "
            "so call `scaler.build(model.trainable_variables)` before the first step.",
        ),
        (
            "3",
            "from keras.src.dtype_policies import dtype_policy\nbefore = dtype_policy.dtype_policy()\n"
            "dtype_policy.set_dtype_policy(before)\n",
            "`keras.src.dtype_policies.dtype_policy` is private: another release may move it without notice.",
            "Use `keras.config.dtype_policy` and `keras.config.set_dtype_policy` instead.",
        ),
        (
            "3",
            "from keras.src.dtype_policies import dtype_policy\nprint(dtype_policy)\n",
            "`keras.src.dtype_policies.dtype_policy` is private: another release may move it without notice.",
            "Use a name of `keras.config` instead.",
        ),
        (
            "tf_keras",
            RESHAPED,
            "This weight is a tf.Variable that the layer makes, and it stays float32: TensorFlow raises where it is "
            "combined with the 16-bit input (line 11).",
            "Cast it where it meets the input, `tf.cast(self.…, inputs.dtype)`: its shape may change, and `add_weight` "
            "makes no such weight.",
        ),
        (
            "tf_keras",
            LOOKED_UP,
            "`mask[..., None]` is float32 and is combined with the layer's 16-bit weight: this line raises under a "
            "mixed policy.",
            "Cast it to the input's dtype: `tf.cast(mask[..., None], self.compute_dtype)`.",
        ),
        (
            "3",
            PHASES,
            "`complex` does not take float16, and the layer's weight is float16 under the mixed policy: this line "
            "raises.",
            "Cast both first: `complex(tf.cast(self.parts[0], tf.float32), …)`.",
        ),
        *(
            (
                "3",
                UNDER_OPTIMIZER.format(optimizer),
                f'"bfloat16" as the global policy keeps the weights in 16 bits{harm}',
                'Use "mixed_bfloat16", which computes in bfloat16 and keeps float32 weights.',
            )
            for optimizer, harm in EFFECTS_IN_BFLOAT16
        ),
        (
            "3",
            NOISY,
            "`normal(…)` is float32 and is combined with the layer's 16-bit input: this line raises under a mixed "
            "policy.",
            "Make it in the input's dtype: `dtype=inputs.dtype`, or `tf.cast(…, inputs.dtype)`.",
        ),
        (
            "3",
            CAST_BY_NAME.format(result="inputs * tf.cast(tf.range(4), tf.float16)"),
            "This cast names float16: it works under one policy only, and raises as soon as the model runs in float32 "
            "or bfloat16.",
            BY_NAME,
        ),
        (
            "3",
            CAST_BY_NAME.format(result="tf.cast(inputs * 2.0, tf.float16)"),
            "This cast names float16: where the model runs in float32 or bfloat16, this is still computed in float16.",
            BY_NAME,
        ),
        (
            "3",
            ANNOTATED,
            "`rfft` does not take float16, and the layer's input is float16 under the mixed policy: this line raises.",
            "Cast first: `rfft(tf.cast(waves, tf.float32))`.",
        ),
    ],
)
def test_messages_use_the_names_of_the_user(keras: str, text: str, message: str, help: str) -> None:
    [finding] = findings_in(facts_of(text, keras))
    assert (finding.message, finding.help) == (message, help)


def test_a_cast_in_a_loss_is_told_what_the_predictions_are_called_there() -> None:
    found = [finding for finding in findings_in(facts_of(CAST_IN_A_LOSS, "tf_keras")) if finding.code == "MP207"]
    assert [finding.help for finding in found] == [
        "Cast to the dtype of the other operand, `guessed.dtype` instead of `tf.float16`, or to float32, which is best "
        "for a loss."
    ]


@pytest.mark.parametrize(("dtype", "is_told"), [("float16", True), ("bfloat16", False)])
def test_a_cast_of_features_to_float16_is_told_what_keras_own_cast_does_to_large_ones(
    dtype: str, is_told: bool
) -> None:
    (finding,) = (each for each in findings_in(facts_of(CAST_FEATURES.format(dtype), "3")) if each.code == "MP603")
    assert ("beyond 65504 have to be scaled down" in finding.help) is is_told


def test_a_legacy_optimizer_is_told_of_the_methods_that_its_wrapper_has() -> None:
    helps = [finding.help for finding in findings_in(facts_of(LEGACY_OPTIMIZER, "3")) if finding.code == "MP106"]
    assert len(helps) == 1 and "get_scaled_loss" in helps[0] and "get_unscaled_gradients" in helps[0]


def test_a_finding_spans_the_expression_that_it_is_about() -> None:
    text = "import keras\nopt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())\nprint(opt.epsilon)\n"
    [finding] = findings_in(facts_of(text, "3", "train.py"))
    assert finding.location == Location("train.py", 3, 7, 3, 18)


def test_values_are_shared_and_not_equal() -> None:
    assert Call() != Call()


@functools.cache
def live(keras: str) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"}
    script = [sys.executable, str(SUPPORT / "live_delegation.py")]
    run = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keras", "class_name", "kind"),
    [
        pytest.param("3", "LossScaleOptimizer", KERAS3, marks=needs_keras("3")),
        pytest.param("tf_keras", "LossScaleOptimizerV3", NEW, marks=needs_keras("tf_keras")),
        pytest.param("tf_keras", "LossScaleOptimizer", CLASSIC, marks=needs_keras("tf_keras")),
    ],
)
def test_the_delegation_table_is_that_of_the_live_wrapper(keras: str, class_name: str, kind: str) -> None:
    [answers] = [found for name, found in live(keras)["wrappers"].items() if name.endswith("." + class_name)]
    has, missing = set(answers["has"]), set(answers["missing"])
    assert not MISSING[kind] & has
    assert missing <= MISSING[kind]
    # `built` is the wrapper's own and right: it is about the wrapper's own variables.
    assert set(answers["own"]) - {"built"} == OWN[kind]
    assert set(answers["lost"]) - {"built", "_hypers_created"} <= LOST[kind]
    assert not LOST[kind] & (has - set(answers["lost"]) - OWN[kind])


@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")])
def test_what_the_constructor_refuses_is_flagged(keras: str) -> None:
    """And what it accepts is not told to raise."""
    for expression, error in live(keras)["refused"].items():
        text = f"import tensorflow as tf\nfrom tensorflow import keras\nopt = {expression}\n"
        told = [
            finding.message
            for finding in findings_in(facts_of(text, keras))
            if finding.code in ("MP304", "MP306", "MP310")
        ]
        assert told or error is None, expression
        assert error or not any("this line raises" in message for message in told), (expression, told)


@needs_keras("3")
def test_public_names_and_defaults_are_those_of_the_live_keras() -> None:
    import inspect

    import keras

    live_names = {name for name in vars(keras.mixed_precision) if not name.startswith("_")}
    assert live_names <= IN_MIXED_PRECISION
    for class_name, defaults in DEFAULTS.items():
        signature = inspect.signature(getattr(keras.optimizers, class_name).__init__).parameters
        assert {name: signature[name].default for name in defaults} == defaults


NUMBER_FIRST = """import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("{policy}")


class Masked(tf.keras.layers.Layer):
    def call(self, x):
        return tf.where(x > 3.0, {number}, x)
"""


@pytest.mark.parametrize(
    ("policy", "number", "is_infinite"),
    [("mixed_float16", "-1e4", False), ("mixed_float16", "-1e9", True), ("mixed_bfloat16", "-1e9", False)],
)
def test_a_number_first_is_cast_if_the_dtype_holds_it(policy: str, number: str, is_infinite: bool) -> None:
    [finding] = findings_in(facts_of(NUMBER_FIRST.format(policy=policy, number=number), "3"))
    assert finding.code == "MP202"
    assert ("is infinite in float16" in finding.help) is is_infinite
    assert (finding.fix is None) is is_infinite
