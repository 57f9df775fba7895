"""What a first run costs, in calls of functions: they are the same on a busy machine and on an idle one.

The package is made so that following calls without bounds would never end: each of its modules calls the one below two
and three times, through functions, constructors and `call()`. When the bounds were loosened on 2026-11-27, the number
grew fourfold, and the first run of tf-models-official took twice as long; nobody noticed for a day."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import pytest

from mpdoctor import source_stage
from mpdoctor.diagnosis import diagnose
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.settings.options import Settings
from mpdoctor.source import facts_from_text

pytestmark = pytest.mark.fast

MODULES = 12
MOST_CALLS = 8_200  # for each line of source: 7,634 on 2026-12-01, in Python 3.11

LOWEST = """import keras


class Block0(keras.layers.Layer):
    def __init__(self, units, rate=0.1, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(units)

    def call(self, x, training=None):
        return self.dense(x)


def scaled_0(x, rate):
    return x * rate


def build_0(x, units):
    return keras.layers.Dense(units)(x)
"""
ABOVE = """import keras
import tensorflow as tf

from part{below} import Block{below}, build_{below}, scaled_{below}


class Block{number}(keras.layers.Layer):
    def __init__(self, units, rate=0.1, **kwargs):
        super().__init__(**kwargs)
        self.inner = Block{below}(units, rate)
        self.dense = keras.layers.Dense(units)
        self.rate = rate

    def build(self, input_shape):
        self.gain = self.add_weight(name="gain", shape=(input_shape[-1],))

    def call(self, x, training=None):
        y = self.inner(x, training=training)
        return self.dense(y) * self.gain + scaled_{below}(x, self.rate)


def scaled_{number}(x, rate):
    if rate > 0.5:
        return scaled_{below}(x, rate) * tf.cast(rate, x.dtype)
    return scaled_{below}(x, rate / 2) + scaled_{below}(x, rate)


def build_{number}(x, units, depth=2):
    for step in range(depth):
        x = Block{number}(units)(x)
    return build_{below}(x, units) + build_{below}(x, units // 2)
"""
SCRIPT = """import keras
import numpy as np
from part{top} import Block{top}, build_{top}

keras.mixed_precision.set_global_policy("mixed_float16")
inputs = keras.Input((8,))
model = keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(build_{top}(Block{top}(8)(inputs), 8)))
model.compile("adam", "mse")
model.fit(np.ones((8, 8)), np.ones((8, 1)))
"""


def package(modules: int) -> dict[str, str]:
    parts = {f"part{number}": ABOVE.format(number=number, below=number - 1) for number in range(1, modules)}
    return {"part0": LOWEST, **parts, "train": SCRIPT.format(top=modules - 1)}


def calls_for_a_line(directory: Path, texts: dict[str, str]) -> float:
    for name, text in texts.items():
        (directory / f"{name}.py").write_text(text)
    settings = Settings((target_from_text("."),), static=True, cache=False)
    diagnose(settings, SilentProgress())  # what is imported and looked up once costs a test more that runs alone
    profile = cProfile.Profile()
    profile.enable()
    diagnosis = diagnose(settings, SilentProgress())
    profile.disable()
    assert not diagnosis.crashed
    return pstats.Stats(profile).total_calls / sum(text.count("\n") for text in texts.values())


def test_a_package_that_calls_itself_deeply_costs_no_more_than_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_stage, "most_processes", lambda: 1)
    monkeypatch.chdir(tmp_path)
    calls = calls_for_a_line(tmp_path, package(MODULES))
    assert calls < MOST_CALLS, calls


# --- one file that holds the same program again and again -----------------------------------------------------------
FIXTURES = Path(__file__).parents[3] / "fixtures" / "rules"


@pytest.mark.parametrize(
    "fixture",
    [
        "mp105/flagged_pretrained_base",
        "mp106/flagged_agents",
        "mp112/flagged_model",
        "mp203/flagged_build",
        "mp305/flagged_compiled",
    ],
)
def test_a_file_of_many_programs_costs_as_much_as_they_do(fixture: str) -> None:
    """Each policy was held against each training and each policy, each raw variable against each operation, and each
    edit looked through the whole tree: 4,000 lines took more than a minute."""
    text = (FIXTURES / f"{fixture}.py").read_text(encoding="utf-8")
    few, many = (calls_of_rules(text * copies) for copies in (15, 60))
    assert many < 6 * few, f"{few:,} calls for 15 copies, {many:,} for 60"


def calls_of_rules(text: str) -> int:
    facts = facts_from_text(text, "train.py")
    profile = cProfile.Profile()
    profile.enable()
    found = list(findings_from_facts("in_source", facts, facts.keras, lambda rule: True))
    profile.disable()
    assert found
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]
