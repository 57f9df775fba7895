"""Overflows that no skipped step shows: told where a layer puts out something else for it than in float32, and silent
where inf leads to the same result; in both Kerases."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from checking import Check, check, needs_keras
from live import START

TRAINED = """
class Mine(L.Layer):
    def call(self, x):
        return {result}

model = K.Sequential([
    L.Input((8,)), L.Dense(16, name="first"), {layer}, L.Dense(8, name="last"), L.Dense(1, dtype="float32"),
])
model.compile(wrapped(K.optimizers.SGD(1e-4)), "mse")
model.fit({scale} * x, y, batch_size=16, epochs=9, verbose=0)
"""
# (what the layer returns, the factor of the data, the rule that tells of it)
SICK = {
    "root mean square": ("x / tf.sqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-3)", 3000, "MP503"),
    "root of a power": ("x * tf.math.rsqrt(1.0 + (x * x) * (x * x))", 100, "MP904"),
}
# (what the layer returns, the policy, the factor of the data)
WAVES = {
    "many periods": ("1e-3 * tf.sin(170.0 * x)", "mixed_float16", 30),
    "many periods of bfloat16 numbers": ("1e-3 * tf.cos(x * 170.0)", "mixed_bfloat16", 3),
}
HEALTHY = {
    "angles that are given so": ("tf.sin(x)", 3000),
    "exponential of a square": ("tf.exp(-x * x)", 1000),
    "reciprocal of a square": ("1.0 / (1.0 + tf.square(x))", 1000),
    "masked scores": ("tf.nn.softmax(x + tf.cast(tf.where(x > -9.0, 0.0, -1e9), x.dtype))", 3),
}
MADE = 'Mine(name="mine")'
BOTH = [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")]


def checked(
    folder: Path, keras: str, result: str, scale: int, layer: str = MADE, policy: str = "mixed_float16"
) -> Check:
    text = START + textwrap.dedent(TRAINED).format(result=result, scale=scale, layer=layer)
    text = text.replace("mixed_float16", policy)
    (folder / "train.py").write_text(text, encoding="utf-8")
    return check("train.py", "--steps", "18", "--ignore", "MP502,MP309", directory=folder, keras=keras)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", BOTH)
@pytest.mark.parametrize("name", WAVES)
def test_a_wave_without_its_phase_is_told_and_the_remedy_heals(name: str, keras: str, tmp_path: Path) -> None:
    result, policy, scale = WAVES[name]
    done = checked(tmp_path, keras, result, scale, policy=policy)
    (finding,) = done.report["findings"]
    assert (finding["code"], finding["layer"], finding["remedies"][0]["tried"]) == ("MP512", "mine", "healed"), done
    assert finding["evidence"]["apart"] > 0.05 and "a whole period is 6.28" in finding["message"]
    healed = checked(tmp_path, keras, result, scale, layer='Mine(name="mine", dtype="float32")', policy=policy)
    assert not healed.report["findings"], healed


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", BOTH)
@pytest.mark.parametrize("name", SICK)
def test_it_is_told_and_the_remedy_heals(name: str, keras: str, tmp_path: Path) -> None:
    result, scale, code = SICK[name]
    done = checked(tmp_path, keras, result, scale)
    found = {finding["code"]: finding for finding in done.report["findings"]}
    assert [code] == list(found), done
    finding = found[code]
    assert (finding["layer"], finding["remedies"][0]["tried"]) == ("mine", "healed"), done
    assert finding["evidence"]["apart"] > 0.05 and "No step is skipped" in finding["message"]
    healed = checked(tmp_path, keras, result, scale, layer='Mine(name="mine", dtype="float32")')
    assert not healed.report["findings"], healed


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", BOTH)
@pytest.mark.parametrize("name", HEALTHY)
def test_an_overflow_that_changes_nothing_is_not_told(name: str, keras: str, tmp_path: Path) -> None:
    done = checked(tmp_path, keras, *HEALTHY[name])
    assert not done.report["findings"], done


@pytest.mark.slow
@pytest.mark.parametrize("keras", BOTH[1:])
def test_layers_behind_it_that_overflow_then_are_named_with_it(keras: str, tmp_path: Path) -> None:
    result, scale, code = SICK["root mean square"]
    behind = f'{MADE}, L.Lambda(lambda h: 3000.0 * h), Mine(name="second")'
    done = checked(tmp_path, keras, result, scale, layer=behind)
    (finding,) = [finding for finding in done.report["findings"] if finding["code"] == code]
    (remedy,) = finding["remedies"]
    assert (remedy["tried"], remedy["layers"]) == ("healed", ["mine", "second"]), done
