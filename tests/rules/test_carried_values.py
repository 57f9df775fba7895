"""A defect is told wherever Python code carries the value at fault, and none where a right value takes the same way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from carriers import CARRIERS, script
from judging import KERASES

from mpdoctor.finding import Finding
from mpdoctor.rules.registry import all_rules
from mpdoctor.source_stage import SourceOfFiles

pytestmark = pytest.mark.fast

CODES = frozenset(rule.code for rule in all_rules())
MIXED = 'keras.mixed_precision.set_global_policy("mixed_float16")\n'
HALF = MIXED + "half = tf.ones((2, 3), tf.float16)\n"
SCORES = 'keras.layers.Dense(10, activation="softmax"'
COMPILED = '.compile("adam", "sparse_categorical_crossentropy")\n'
FITTED = COMPILED + "model.fit(tf.ones((4, 3)), tf.zeros((4,)))"
LOOP = f"""{MIXED}\
model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))
mse = keras.losses.MeanSquaredError()
x, y = tf.ones((2, 3)), tf.ones((2, 1))
def gradients():
    with tf.GradientTape() as tape:
        scaled = optimizer.get_scaled_loss(mse(y, model(x)))
    return tape.gradient(scaled, model.trainable_variables)
"""


@dataclass(frozen=True)
class Kind:
    """A kind of value: what stands before, the expression at fault and the right one, how it is used, which rule speaks
    in which Keras."""

    before: str
    wrong: str
    right: str
    use: str
    code: str
    keras: str = "3"


KINDS = {
    "gradients": Kind(
        LOOP,
        "gradients()",
        "optimizer.get_unscaled_gradients(gradients())",
        "optimizer.apply_gradients(zip({}, model.trainable_variables))",
        "MP402",
        "2.15",
    ),
    "tensor": Kind(HALF, "tf.ones((2, 3), tf.float32)", "tf.ones((2, 3), tf.float16)", "print(half * {})", "MP202"),
    "dtype": Kind(HALF, "tf.float32", "tf.float16", "print(half * tf.cast(half, {}))", "MP202"),
    "layer": Kind(
        MIXED,
        f"{SCORES})",
        f'{SCORES}, dtype="float32")',
        f"model = keras.Sequential([keras.layers.Dense(8), {{}}])\nmodel{FITTED}",
        "MP201",
    ),
    "model": Kind(
        MIXED,
        f"keras.Sequential([keras.layers.Dense(8), {SCORES})])",
        f'keras.Sequential([keras.layers.Dense(8), {SCORES}, dtype="float32")])',
        f"{{}}{COMPILED}",
        "MP201",
    ),
    "number": Kind(HALF, "1e-9", "1e-3", "print(half / (tf.reduce_mean(half) + {}))", "MP502"),
    "wrapper": Kind(
        MIXED,
        "keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())",
        "keras.optimizers.Adam()",
        "print({}.epsilon)",
        "MP301",
    ),
    "policy": Kind(
        "",
        "'mixed_float16'",
        "'float32'",
        "keras.mixed_precision.set_global_policy({})\n"
        f"model = keras.Sequential([keras.layers.Dense(8), {SCORES})])\nmodel{FITTED}",
        "MP201",
    ),
}
NOT_FOLLOWED = {"singleton", "methodcaller", "singledispatch", "itemgetter", "attrgetter"}
NOT_CERTAIN = {"getattr_default", "enum_value", "walrus"}  # followed, but not for each kind of value


def told(directory: Path, kind: Kind, make: str) -> dict[str, set[str]]:
    """The rules that speak in each carrier's script."""
    names = {}
    for carrier in CARRIERS:
        path = directory / f"{carrier}_carrier.py"
        path.write_text(script(carrier, kind.before, make, kind.use), encoding="utf-8")
        names[path.absolute()] = carrier
    stage = SourceOfFiles(names)
    said = list(stage.judge(lambda path: KERASES[kind.keras], CODES, list(stage.facts)))
    found: dict[str, set[str]] = {carrier: set() for carrier in CARRIERS}
    for item in said:
        assert isinstance(item, Finding), item
        assert item.location is not None
        found[item.location.path].add(item.code)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_a_defect_is_told_behind_each_carrier(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    silent = {carrier for carrier, codes in told(tmp_path, kind, kind.wrong).items() if kind.code not in codes}
    assert silent - NOT_CERTAIN <= NOT_FOLLOWED, silent
    assert NOT_FOLLOWED - {"itemgetter", "attrgetter"} <= silent, "followed now: take it off the list"


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_told_of_a_right_value(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    assert {carrier: codes for carrier, codes in told(tmp_path, kind, kind.right).items() if codes} == {}
