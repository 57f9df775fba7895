"""What scaling a loss comes to in the text of loops of many styles: which optimizer scales which loss, and where."""

from __future__ import annotations

import pytest
from test_fixes_of_rules import found_in, in_rounds

pytestmark = pytest.mark.fast

START = """import tensorflow as tf
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
one = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
two = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
{optimizers}
mse = keras.losses.MeanSquaredError()


def helper(x, y):
    return mse(y, one(x))


def step(x, y):
"""
BARE = "first, second = keras.optimizers.Adam(1e-3), keras.optimizers.Adam(1e-3)"
WRAPPER = "keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(1e-3))"
WRAPPED = f"first, second = {WRAPPER}, {WRAPPER}"

TWO_TAPES = """\
    with tf.GradientTape() as tape, tf.GradientTape() as other:
        a = mse(y, one(x))
        b = mse(y, two(x))
    first.apply(tape.gradient(a, one.trainable_variables), one.trainable_variables)
    second.apply(other.gradient(b, two.trainable_variables), two.trainable_variables)
"""
TWO_SCALES = """\
    with tf.GradientTape(persistent=True) as tape:
        loss = mse(y, two(one(x)))
    first.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
    second.apply(tape.gradient(loss, two.trainable_variables), two.trainable_variables)
"""
ADDED = """\
    with tf.GradientTape() as tape:
        loss = mse(y, one(x))
        loss += sum(one.losses)  # of its layers
    first.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""
ADDED_EACH = """\
    with tf.GradientTape() as tape:
        loss = mse(y, one(x))
        for weight in one.trainable_variables:
            loss += tf.nn.l2_loss(weight)
        tf.print("done")
    first.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""
BRANCHES = """\
    with tf.GradientTape() as tape:
        if len(y) > 2:
            loss = mse(y, one(x))
        else:
            loss = tf.reduce_mean(one(x))
    first.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""
HELPED = """\
    with tf.GradientTape() as tape:
        loss = helper(x, y)
    first.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""
UNDER_IT = """\
    with tf.GradientTape() as tape:
        loss = helper(x, y)
        grads = tape.gradient(loss, one.trainable_variables)
    first.apply(grads, one.trainable_variables)
"""
# What is put in, and what stands in the line before it.
SCALED = [
    (TWO_TAPES, {"scaled_a = first.scale_loss(a)": "a = mse", "scaled_b = second.scale_loss(b)": "b = mse"}),
    (
        TWO_SCALES,
        {
            "scaled_loss = first.scale_loss(loss)": "scaled_loss_of_second",
            "scaled_loss_of_second = second.scale_loss(loss)": "loss = mse",
        },
    ),
    (ADDED, {"scaled_loss = first.scale_loss(loss)": "loss += sum(one.losses)  # of its layers"}),
    (ADDED_EACH, {"scaled_loss = first.scale_loss(loss)": "loss += tf.nn"}),
    (BRANCHES, {"scaled_loss = first.scale_loss(loss)": "loss = tf.reduce_mean"}),
    (HELPED, {"scaled_loss = first.scale_loss(loss)": "loss = helper"}),
    (UNDER_IT, {"scaled_loss = first.scale_loss(loss)": "loss = helper"}),
]
NAMES = ("two tapes", "two scales", "added", "added each", "branches", "helped", "under it")


@pytest.mark.parametrize("optimizers", [BARE, WRAPPED], ids=["bare", "wrapped"])
@pytest.mark.parametrize(("body", "wanted"), SCALED, ids=NAMES)
def test_each_loss_is_scaled_where_it_is_whole(body: str, wanted: dict[str, str], optimizers: str) -> None:
    text = START.format(optimizers=optimizers) + body
    fixed = in_rounds(text, "3", unsafe=True)
    lines = fixed.splitlines()
    for line, before in wanted.items():
        (number,) = (place for place, written in enumerate(lines) if written.strip() == line)
        assert before in lines[number - 1], fixed
        indent = len(lines[number]) - len(lines[number].lstrip())
        assert indent == 8, fixed
        assert fixed.count(f"gradient({line.partition(' =')[0]}, ") == 1, fixed
    assert not found_in(fixed, "3"), fixed


CLIPS = """\
import tensorflow as tf
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
one = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
LIMIT = 1.0


class Trainer:
    def __init__(self, limit=1.0):
        {before}
        self.optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
        {behind}

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.optimizer.scale_loss(keras.ops.mean((one(x) - y) ** 2))
        gradients = tape.gradient(loss, one.trainable_variables)
        gradients, _ = tf.clip_by_global_norm(gradients, {limit})
        self.optimizer.apply(gradients, one.trainable_variables)


Trainer().step(f(), g())
"""


@pytest.mark.parametrize(
    ("before", "behind", "limit", "wanted"),
    [
        ("pass", "pass", "1.0", "SGD(0.1, global_clipnorm=1.0)"),
        ("pass", "pass", "LIMIT", "SGD(0.1, global_clipnorm=LIMIT)"),
        ("self.limit = limit", "pass", "self.limit", "SGD(0.1, global_clipnorm=self.limit)"),
        ("pass", "self.limit = limit", "self.limit", "(gradients, self.optimizer.scale_loss(self.limit))"),
    ],
)
def test_a_limit_stays_what_the_program_says_it_is(before: str, behind: str, limit: str, wanted: str) -> None:
    text = CLIPS.format(before=before, behind=behind, limit=limit)
    assert [finding.code for finding in found_in(text, "3")] == ["MP405"]
    assert wanted in in_rounds(text, "3", unsafe=True)


ONE_OF_TWO_TAPES = """\
    if len(y) > 2:
        with tf.GradientTape() as tape:
            loss = helper(x, y)
    else:
        with tf.GradientTape() as tape:
            loss = helper(x, -y)
    first.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""
ON_ONE_LINE = """\
    with tf.GradientTape() as tape: loss = helper(x, y)
    first.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""
SHARED_LINE = """\
    with tf.GradientTape() as tape:
        loss = helper(x, y); loss += 1.0
    first.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""
NOT_UNDER_IT = """\
    loss = helper(x, y)
    with tf.GradientTape() as tape:
        tf.print("nothing")
    first.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""


NAMED_LATER = """\
    with tf.GradientTape() as tape:
        loss = helper(x, y)
    optimizer = first
    optimizer.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""
NAMED_BY_A_LOOP = """\
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean((one(x) - y) ** 2)
    for optimizer in (first,):
        optimizer.apply(tape.gradient(loss, one.trainable_variables), one.trainable_variables)
"""
SCALED_LATER = """\
    with tf.GradientTape() as tape:
        loss = helper(x, y)
    optimizer = first
    scaled = optimizer.scale_loss(loss)
    optimizer.apply(tape.gradient(scaled, one.trainable_variables), one.trainable_variables)
"""


@pytest.mark.parametrize(
    ("body", "code"),
    [
        *((body, "MP401") for body in (ONE_OF_TWO_TAPES, ON_ONE_LINE, SHARED_LINE, NOT_UNDER_IT)),
        *((body, "MP401") for body in (NAMED_LATER, NAMED_BY_A_LOOP)),
        (SCALED_LATER, "MP404"),
    ],
)
def test_nothing_is_edited_where_the_line_might_not_run(body: str, code: str) -> None:
    text = START.format(optimizers=WRAPPED) + body
    assert [(finding.code, finding.fix) for finding in found_in(text, "3")] == [(code, None)]


STALE = """import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
net = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
adam = tf.keras.optimizers.Adam(1e-3)
net.compile(adam, "mse")


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(net(x, training=True) - y))
{scaling}    gradients = {gradients}
    {optimizer}.apply_gradients(zip(gradients, net.trainable_variables))
"""


@pytest.mark.parametrize(
    ("keras", "scaling", "gradients"),
    [
        ("3", "scale_loss", "tape.gradient(scaled_loss, net.trainable_variables)"),
        (
            "tf_keras",
            "get_scaled_loss",
            "net.optimizer.get_unscaled_gradients(tape.gradient(scaled_loss, net.trainable_variables))",
        ),
    ],
)
def test_a_step_with_the_bare_optimizer_is_given_the_one_of_compile(keras: str, scaling: str, gradients: str) -> None:
    bare = STALE.format(scaling="", gradients="tape.gradient(loss, net.trainable_variables)", optimizer="adam")
    scaled = f"        scaled_loss = net.optimizer.{scaling}(loss)\n"
    assert in_rounds(bare, keras, unsafe=True) == STALE.format(
        scaling=scaled, gradients=gradients, optimizer="net.optimizer"
    )


SUMS = """import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
net = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1, dtype="float32")])
opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.05))
net.build((None, 6))
store = [tf.Variable(tf.zeros_like(v), trainable=False) for v in net.trainable_variables]


def collect(x, y):
    with tf.GradientTape() as tape:
        scaled = opt.get_scaled_loss(tf.reduce_mean(tf.square(y - net(x, training=True))))
    for kept, gradient in zip(store, {gradients}):
        kept.assign_add(gradient / 4)
{again}

def commit():
    opt.apply_gradients(zip(store, net.trainable_variables))
    for kept in store:
        kept.assign(tf.zeros_like(kept))
"""
AGAIN = """    for kept, gradient in zip(store, tape.gradient(scaled, net.trainable_variables)):
        kept.assign_add(gradient / 4)
"""


@pytest.mark.parametrize("again", ["", AGAIN])
def test_sums_of_scaled_gradients_are_unscaled_where_the_one_tape_gives_them(again: str) -> None:
    """Where two are added up, the edit of one would hide the other."""
    gradients = "tape.gradient(scaled, net.trainable_variables)"
    wanted = gradients if again else f"opt.get_unscaled_gradients({gradients})"
    text = SUMS.format(gradients=gradients, again=again)
    assert in_rounds(text, "tf_keras", unsafe=True) == SUMS.format(gradients=wanted, again=again)
