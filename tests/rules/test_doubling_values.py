"""Values that forty lines double, 2^40 of them, and values that a thousand lines wrap: rules ask each part once, and
whatever its depth."""

from __future__ import annotations

import pytest
from fuzzing import at_most
from judging import facts_of, findings_in

from mpdoctor.judging.shown_findings import findings_for_report
from mpdoctor.program.values import Known, known, leaves

pytestmark = pytest.mark.fast

HEAD = """\
import tensorflow as tf
from tensorflow import keras

keras.mixed_precision.set_global_policy("mixed_float16")
"""
# Where values end up that rules take apart; `v` doubles in the place of each `...`.
USES = {
    "model": """\
v = x = keras.Input((4,))
...
m = keras.Model(v, v)
m.compile("adam", loss=v, metrics=v)
m.fit(v, v)
""",
    "argument": """\
import argparse
v = argparse.ArgumentParser().parse_args().name
...
t = tf.constant(v)
y = t + tf.ones(3)
""",
    "step": """\
opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD())
with tf.GradientTape() as tape:
    v = opt.get_scaled_loss(tf.reduce_mean(model(x)))
    ...
v = tape.gradient(v, model.trainable_variables)
...
opt.apply_gradients(zip(v, model.trainable_variables))
""",
    "losses beside": """\
opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD())
with tf.GradientTape() as tape:
    v = sum(model.losses)
    ...
    loss = opt.get_scaled_loss(tf.reduce_mean(model(x))) + v
g = opt.get_unscaled_gradients(tape.gradient(loss, model.trainable_variables))
opt.apply_gradients(zip(g, model.trainable_variables))
""",
    "penalty": """\
v = model.trainable_variables
...
with tf.GradientTape() as tape:
    loss = tf.add_n(v) + f(x)
gradients = tape.gradient(loss + v, model.trainable_variables)
""",
    "layer": """\
class A(keras.layers.Layer):
    def call(self, v):
        ...
        return tf.cast(v, "float16") + 1e9
""",
    "subclass": """\
class M(keras.Model):
    def call(self, v):
        ...
        return v
m = M()
m.compile("adam", "mse")
m.fit(x, y)
""",
    "loss": """\
def loss(y, v):
    ...
    return tf.reduce_mean(v / y)
m = keras.Sequential([keras.layers.Dense(1)])
m.compile("adam", loss)
m.fit(x, y)
""",
    "data": """\
def prepare(v):
    ...
    return v, v
m = keras.Sequential([keras.layers.Dense(1)])
m.compile("adam", "mse")
m.fit(tf.data.Dataset.from_tensor_slices(x).map(prepare))
""",
    "average": """\
class A(keras.layers.Layer):
    def build(self, shape):
        self.mean = self.add_weight(shape=(4,), dtype="float16", trainable=False)
    def call(self, x):
        v = 0.9 * self.mean
        ...
        self.mean.assign(v + 0.1 * x)
        return x
m = keras.Sequential([A()])
m.compile("adam", "mse")
m.fit(x, y)
""",
    "loop": """\
v = np.ones((4,))
...
for each in v:
    print(each)
""",
    "sizes": """\
class Mean(keras.layers.Layer):
    def call(self, x):
        v = tf.cast(tf.shape(x)[1], tf.float32)
        ...
        return x / v
m = keras.Sequential([Mean()])
m.compile("adam", "mse")
m.fit(x, y)
""",
    "arguments": """\
v = {"units": 4}
...
m = keras.Sequential(v)
m.add(keras.layers.Dense(v, **v))
""",
}
DOUBLING = (
    "v = (v, v)",
    "v = [v, v]",
    "v = {'a': v, 'b': v}",
    "v = [*v, *v]",
    "v = dict(**v, **v)",
    "v = v + v",
    "v = v * v",
    "v += v",
    "v.extend(v)",
    "v = v or (v and v)",
    "v = (v, v) if some else [v, v]",
    "v = (lambda q: (q, q))(v)",
    "v = tf.concat([v, v], 0)",
    "v = tf.maximum(v, v)",
    "v = zip(v, v)",
    "v = v + tf.nn.relu(v)",
    "v = keras.layers.Add()([v, keras.layers.Dense(4)(v)])",
    "v = v + keras.layers.Dense(4)(v)",
    "v = tf.where(v > 0, v, v / tf.reduce_max(v))",
    "v = v @ tf.transpose(v) if some else tf.cast(v, v.dtype)",
)
WRAPPING = (
    "v = [v]",
    "v = (v,)",
    "v = {'a': v}",
    "v = [v] if some else v",
    "v = v + 1.0",
    "v = -v",
    "v = v / u",
    "v = v.T",
    "v = v[0]",
    "v, *_ = v",
    "v = unknown(v)",
    "v = v.map(lambda q: q)",
    "v = tf.cast(v, 'float32')",
    "v = tf.concat([v, v], 0)",
    "v = tf.reduce_mean(v)",
    "v = tf.exp(v)",
    "v = np.reshape(v, (3,))",
    "v = keras.layers.TimeDistributed(v)",
    "v = keras.layers.Dense(3)(v)",
    "v = keras.Sequential([v])",
    "v = keras.mixed_precision.LossScaleOptimizer(v)",
    "v = functools.partial(v, 1)",
    "v = lambda q, v=v: v(q)",
)
WRAPPED = 1000  # times: Python's own limit of frames


def repeated(use: str, line: str, times: int) -> str:
    lines = (HEAD + USES[use]).split("\n")
    return "\n".join(each.replace("...", line) for each in lines for _ in range(times if each.strip() == "..." else 1))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("line", DOUBLING)
def test_a_value_that_doubles_is_judged_in_time(use: str, line: str) -> None:
    for keras in ("3", "2.10"):
        findings_in(facts_of(repeated(use, line, 40), keras))


@pytest.mark.sampled(30)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("line", WRAPPING)
def test_a_value_that_is_wrapped_a_thousand_times_is_judged(use: str, line: str) -> None:
    findings_in(facts_of(repeated(use, line, WRAPPED), "3"))


def test_what_a_structure_holds_comes_once_and_in_order() -> None:
    facts = facts_of("a = [1, (2, {'k': 3, 'l': [4]}), 5]\nfor _ in range(3):\n    pass\na = [a, a]\nprint(a)", "3")
    (value,) = facts.calls[-1].args
    assert [known(leaf) for leaf in leaves(value) if isinstance(leaf, Known)] == [1, 2, 3, 4, 5]


def test_a_list_that_spreads_itself_stays_small() -> None:
    facts = facts_of("a = [1]\n" + "a = [*a, *a]\n" * 40 + "print(a)", "3")
    (value,) = facts.calls[-1].args
    assert sum(1 for _ in leaves(value)) <= 10_000


def test_a_hundred_thousand_selectors_are_judged_in_time() -> None:
    selectors = ",".join(f"a{number}" for number in range(100_000))
    (finding,) = findings_in(facts_of(f"x = 1  # mpdoctor: ignore[{selectors},MP101]\n", "3"))
    assert finding.code == "MP005" and len(finding.message) < 300


@pytest.mark.parametrize(
    "line", ["keras.mixed_precision.set_global_policy({0!r})", "keras.layers.Dense(1, dtype={0!r})"]
)
def test_a_name_of_a_million_letters_is_shortened(line: str) -> None:
    facts = facts_of(f"import keras\n{line.format('mixed_' + 'f' * 10**6)}\n", "3")
    (finding,) = findings_for_report(findings_in(facts), {facts.path: facts})
    assert finding.message.startswith('"mixed_ff') and finding.message.endswith("this line raises.")
    assert len(finding.message) < 3000 and len(finding.help) < 3000


# What one rule or another asks for each finding, class or call, and must not look for in the whole file.
LONG = {
    "products": ("x = tf.cast(y, 'float16') + (1 - mask) * -1e9\n", 2000),
    "models": ("m = keras.Sequential([keras.layers.Dense(3)])\nm.compile('adam', 'mse')\nm.fit(x, y)\n", 500),
    "added layers": (
        "m = keras.Sequential()\nm.add(keras.layers.Dense(3))\nm.compile('adam', 'mse')\nm.fit(x, y)\n",
        400,
    ),
    "comments": ("x = 1  # mpdoctor: ignore[MP501]\n", 5000),
    "steps": (
        """\
with tf.GradientTape() as tape:
    loss = model(x)
gradients = tape.gradient(loss, model.trainable_variables)
opt.apply_gradients(zip(gradients, model.trainable_variables))
""",
        1000,
    ),
    "classes": (
        """\
class L{0}(keras.layers.Layer):
    def call(self, x):
        return tf.cast(x, "float16") + tf.ones(3)
L{0}()(1)
""",
        1000,
    ),
    "bases": ("class L{1}(L{0}): pass\n", 3000),
    "tries": (
        "try:\n    keras.mixed_precision.set_global_policy('mixed_float16')\nexcept Exception:\n    pass\n",
        6000,
    ),
    "functions": ("def f{0}(x):\n    return keras.layers.Dense({0})(x)\n", 12000),
    "operations": ("x = tf.cast(x, 'float16') / 1e-3 + tf.ones((2,)) * 2.0 - tf.sqrt(x + 1.0)\n", 2000),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_program_is_judged_in_time(name: str) -> None:
    part, count = LONG[name]
    lines = "".join(part.format(number, number + 1) for number in range(count))
    head = HEAD + "opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD())\nL0 = keras.layers.Layer\n"
    with at_most(12):
        facts = facts_of(head + lines, "3")
        findings_for_report(findings_in(facts), {facts.path: facts})
