"""The semantics behind the rules about numbers: constants in any form, and the dtypes that a program computes in."""

from __future__ import annotations

import dataclasses
import math

import pytest
from described import PRELUDE, facts_of
from judging import KERASES, findings_in

from mpdoctor.facts.versions import Keras
from mpdoctor.program.values import Value
from mpdoctor.semantics.source.layers.precision import Precision
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.numbers.value_counts import large_pooling

pytestmark = pytest.mark.fast

MIXED = "mp.set_global_policy('mixed_float16')\n"


def printed(snippet: str) -> tuple[Value, ...]:
    return [call for call in facts_of(snippet).calls if call.method == "print"][-1].args


@pytest.mark.parametrize(
    ("snippet", "numbers"),
    [
        ("print(-1e9)", (-1e9,)),
        ("E = 10 ** -8\nprint(E)", (1e-8,)),
        ("print(tf.constant(-1e9, dtype='float16'))", (-1e9,)),
        ("print(tf.cast(value, tf.float16))", ()),
        ("print(tf.cast(1e-8, x.dtype))", (1e-8,)),
        ("print(-tf.constant(1e9))", (-1e9,)),
        ("print(np.finfo(np.float32).max)", (3.4028234663852886e38,)),
        ("print(np.finfo('float16').min)", ()),
        ("print(tf.float32.min)", (-3.4028234663852886e38,)),
        ("print(tf.float16.min)", ()),
        ("print(x.dtype.min)", ()),
        ("print(np.inf)", (math.inf,)),
        ("print(True)", ()),
        ("print(1e9 if big else 1e3)", (1e9, 1e3)),
        ("print(1e9 if big else other)", ()),
        ("class C:\n    eps = 1e-8\nprint(C.eps)", (1e-8,)),
        ("conf = {'eps': 1e-8}\nprint(conf['eps'])", (1e-8,)),
        ("def f(eps=1e-12):\n    print(eps)", (1e-12,)),
        ("def f(eps=1e-12):\n    print(eps)\nf(1e-3)", (1e-3,)),
        ("print(10 ** 400)", ()),
        ("print(keras.backend.epsilon())", (1e-7,)),
        ("keras.backend.set_epsilon(1e-4)\nprint(1 - keras.backend.epsilon())", (0.9999,)),
        ("if half:\n    keras.backend.set_epsilon(1e-4)\nprint(keras.backend.epsilon())", ()),
    ],
)
def test_the_numbers_that_a_value_may_be(snippet: str, numbers: tuple[float, ...]) -> None:
    assert numbers_from_value(printed(snippet)[0]) == numbers


LAYER = "class L(layers.Layer):\n    def build(self, s):\n        self.w = self.add_weight(shape=(2,))\n"
SIZE = LAYER + "    def size(self):\n        print(self.w)\n"
NET = "class N(keras.Model):\n    def __init__(self):\n        super().__init__()\n        self.d = layers.Dense(1)\n"
CALL = "    def call(self, x):\n        return self.d(x)\n"
STEP = "    def train_step(self, data):\n        x, y = data\n"


@pytest.mark.parametrize(
    ("keras", "snippet", "dtype"),
    [
        ("3", LAYER + "    def call(self, x):\n        print(x)\nL()", "float16"),
        ("3", LAYER + "    def call(self, x):\n        print(x)\nL(dtype='float32')", "float32"),
        ("3", LAYER + "    def call(self, x):\n        print(x)\nL(dtype='mixed_bfloat16')", "bfloat16"),
        ("3", LAYER + "    def call(self, x):\n        print(self.w)\nL()", "float16"),
        ("3", SIZE + "    def call(self, x):\n        self.size()\nL()", "float16"),
        ("3", SIZE + "    def train_step(self, data):\n        self.size()\nL()", "float32"),
        ("3", LAYER + "    def call(self, x):\n        tf.cond(x, lambda: print(self.w), None)\nL()", "float16"),
        ("3", NET.replace("Dense(1)", "Dense(1, dtype='float32')") + CALL + "print(N()(1.0))", "float32"),
        ("3", NET + CALL + "print(N()(1.0))", "float16"),
        ("3", NET + CALL + STEP + "        print(self(x))\nN()", "float16"),
        ("3", NET + CALL + STEP + "        print(y)\nN()", "data"),
        ("3", NET + CALL + STEP + "        print(y - self(x))\nN()", None),
        ("3", NET + CALL + STEP + "        print(tf.cast(y, self(x).dtype) * other)\nN()", "float16"),
        ("3", NET + CALL + STEP + "        print(self.compute_loss(x, y, self(x)))\nN()", "float32"),
        ("tf_keras", NET + CALL + STEP + "        print(self.compiled_loss(y, self(x)))\nN()", "float16"),
        ("3", NET + CALL + "print(keras.losses.MeanSquaredError()(y, N()(x)))", "float32"),
        ("tf_keras", NET + CALL + "print(keras.losses.MeanSquaredError()(y, N()(x)))", "float16"),
        ("3", NET + CALL + "print(keras.losses.mean_squared_error(y, N()(x)))", "float16"),
        ("3", NET + CALL + "def f(y, p):\n    print(p)\nN().compile('sgd', f)", "float32"),
        ("tf_keras", NET + CALL + "def f(y, p):\n    print(p)\nN().compile('sgd', f)", "float16"),
        ("tf_keras", NET + CALL + "def f(y, p):\n    print(y)\nN().compile('sgd', loss=[f])", "float16"),
        ("3", NET + CALL + "def f(y, p):\n    print(y)\nN().compile('sgd', 'mse', metrics=[f])", "float32"),
        ("3", NET + CALL + "def f(y, p):\n    print(p)\nN().compile('sgd', 'mse', metrics={'a': f})", "float16"),
        ("tf_keras", NET + CALL + "def f(y, p):\n    print(p)\nN().compile('sgd', 'mse', metrics=[f])", "float32"),
        ("3", "m = keras.Sequential([layers.Dense(1), layers.Activation('relu')])\nprint(m(x))", "float16"),
        ("3", "m = keras.Sequential([layers.Dense(1), layers.Lambda(f)])\nprint(m(x))", None),
        ("3", "m = keras.models.load_model('a')\nprint(m(x))", None),
        ("3", "layers.Lambda(lambda t: print(t))", "float16"),
        ("3", "layers.Lambda(lambda t: print(t), dtype='float32')", "float32"),
    ],
)
def test_the_dtype_of_a_tensor_under_the_policy(keras: str, snippet: str, dtype: str | None) -> None:
    facts = dataclasses.replace(facts_of(MIXED + snippet), keras=KERASES[keras])
    call = [call for call in facts.calls if call.method == "print"][-1]
    assert Precision(facts).dtype(call.args[0], call.context) == dtype


@pytest.mark.parametrize(("version", "codes"), [("3.3.3", []), ("3.7.0", []), ("3.8.0", ["MP509"]), ("", ["MP509"])])
def test_keras_casts_added_losses_up_to_3_7(version: str, codes: list[str]) -> None:
    facts = facts_of(MIXED + "layers.Dense(8, activity_regularizer='l2')\n", PRELUDE)
    assert [finding.code for finding in findings_in(dataclasses.replace(facts, keras=Keras("keras", version)))] == codes


def test_residual_connections_take_no_time() -> None:
    """Each of them leads to what is before it twice: 2^28 ways, unless what was found is remembered."""
    blocks = "x = x + keras.layers.Activation('relu')(x)\n" * 28
    text = (
        f"import keras\n{MIXED}x = keras.Input((512, 512, 4))\n{blocks}keras.layers.GlobalAveragePooling2D()(x)\n"
        "keras.ops.mean(x, axis=(1, 2))\n"
    )
    assert [number for _, number in large_pooling(facts_of(text, ""))] == [512 * 512]


OWN_NUMBER = """class M(keras.metrics.Metric):
    def update_state(self, y_true, y_pred, sample_weight=None):
        width = tf.cast(tf.shape(y_pred)[1], tf.float32)
        return y_pred / width
model = keras.Sequential([layers.Dense(4)])
model.compile('adam', 'mse', metrics=[M()])
"""


@pytest.mark.parametrize("keras", KERASES)
def test_a_metric_that_makes_the_float32_tensor_itself_is_not_told_of_labels(keras: str) -> None:
    facts = dataclasses.replace(facts_of(MIXED + OWN_NUMBER), keras=KERASES[keras])
    assert [found.message for found in findings_in(facts) if found.code == "MP508"] == [
        "`tf.cast(tf.shape(y_pred)[1], tf.float32)` (line 9) is float32, and is combined with a float16 tensor here: "
        "this line raises."
    ]


def test_labels_that_keras_2_casts_are_not_called_the_prediction() -> None:
    loss = "def off(y_true, y_pred):\n    return y_true * tf.cast(tf.shape(y_true)[1], tf.float32)\n"
    compiled = "model = keras.Sequential([layers.Dense(4)])\nmodel.compile('adam', loss=off)\n"
    facts = dataclasses.replace(facts_of(MIXED + loss + compiled), keras=KERASES["tf_keras"])
    assert [found.message for found in findings_in(facts) if found.code == "MP505"] == [
        "`tf.cast(tf.shape(y_true)[1], tf.float32)` is float32, not float16, and is combined with the labels here, "
        "which Keras casts to the prediction's float16: this line raises."
    ]


GUARDED = """
class Unit(tf.keras.layers.Layer):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps
    def call(self, x):
        norm = tf.reduce_max(tf.abs(x), axis=-1, keepdims=True)
        return {}
Unit()(tf.keras.Input((3,)))
"""


@pytest.mark.parametrize(
    "divisor",
    ["norm + 1e-6", "norm + self.eps", "self.eps + norm", "tf.maximum(norm, tf.keras.backend.epsilon())"],
)
def test_the_advice_leaves_out_the_epsilon_that_does_not_help(divisor: str) -> None:
    """divide_no_nan(x, norm + 1e-7) has a gradient of inf at 0, as the division has it."""
    findings = findings_in(facts_of(MIXED + GUARDED.format(f"(x + 1.0) / ({divisor})")))
    assert [finding.help.partition(":")[0] for finding in findings if finding.code == "MP502"] == [
        "Write `tf.math.divide_no_nan(x + 1.0, norm)`"
    ]


@pytest.mark.parametrize(
    ("quotient", "advice"),
    [
        ("1.0 / (norm + 1e-6)", "Write `tf.math.reciprocal_no_nan(norm)`"),
        ("2.5 / tf.maximum(norm, 1e-9)", "Write `2.5 * tf.math.reciprocal_no_nan(norm)`"),
        ("x / (norm + 1e-6)", "Write `tf.math.divide_no_nan(x, norm)`"),
    ],
)
def test_a_number_is_divided_by_another_function(quotient: str, advice: str) -> None:
    """divide_no_nan(1.0, norm) makes float32 of the number, and raises up to TensorFlow 2.10."""
    findings = findings_in(facts_of(MIXED + GUARDED.format(quotient)))
    assert [finding.help.partition(":")[0] for finding in findings if finding.code == "MP502"] == [advice]


@pytest.mark.parametrize(
    ("returned", "is_told"),
    [
        ("x * tf.reduce_sum(x, axis=[1, 2], keepdims=True)", True),
        ("x / tf.norm(x)", True),
        ("tf.reduce_sum(x, axis=[1, 2]) * 0.5", False),
        ("tf.cast(tf.reduce_sum(x, axis=[1, 2]), tf.float32) * tf.ones([4])", False),
    ],
)
def test_a_sum_in_float32_meets_no_float16(returned: str, is_told: bool) -> None:
    findings = findings_in(facts_of(MIXED + GUARDED.format(returned)))
    (advice,) = [finding.help for finding in findings if finding.code == "MP503"]
    assert ("Cast what it is combined with as well" in advice) is is_told


OPTION = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--eps', type=float, default=1e-12)\n"


def test_the_default_of_an_option_is_named_and_left_out() -> None:
    divided = GUARDED.format("(x + 1.0) / (norm + args.eps)")
    (finding,) = findings_in(facts_of(f"{OPTION}args = p.parse_args()\n{MIXED}{divided}"))
    assert finding.message.startswith("1e-12, the default of `args.eps`, is 0 in float16")
    assert finding.help.startswith("Write `tf.math.divide_no_nan(x + 1.0, norm)`")


@pytest.mark.parametrize(
    ("quotient", "advice"),
    [
        ("(x + 1e-6) / (norm + 1e-6)", "Write `1e-3` above and below"),
        ("(self.eps + x) / (norm + self.eps)", "Write `1e-3` above and below"),
        ("tf.math.divide(2 * x + 1e-6, norm + 1e-6)", "Write `1e-3` above and below"),
        ("(x + 1e-3) / (norm + 1e-6)", "Write `tf.math.divide_no_nan(x + 0.001, norm)`"),
        ("(x * 1e-6) / (norm + 1e-6)", "Write `tf.math.divide_no_nan(x * 1e-06, norm)`"),
    ],
)
def test_a_number_that_is_added_above_as_well_may_be_larger(quotient: str, advice: str) -> None:
    """(0 + 1e-3) / (0 + 1e-3) is 1 with a gradient of 1000; divide_no_nan(0 + 1e-3, 0) is 0 (TensorFlow 2.15)."""
    findings = findings_in(facts_of(MIXED + GUARDED.format(quotient)))
    assert [finding.help.partition(":")[0] for finding in findings if finding.code == "MP502"] == [advice]
