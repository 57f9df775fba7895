"""A program whose classes lie in another file is told the same as one that is a single file, line by line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from judging import KERASES, facts_of, findings_in
from marks import marks_from_source
from split_programs import split_program

from mpdoctor.finding import Finding
from mpdoctor.rules.registry import all_rules
from mpdoctor.source_stage import SourceOfFiles, SourceOfProgram

FIXTURES = Path(__file__).parents[2] / "fixtures"
CODES = frozenset(rule.code for rule in all_rules())
PROGRAMS = [path for folder in ("rules", "held_out") for path in sorted((FIXTURES / folder).glob("*/*.py"))]

# A class that a script imports and never makes may be anybody's; of one that it defines itself something is said.
ONLY_OF_THE_FILE_ITSELF = frozenset(["mp401/flagged_model_for_others", "mp506/flagged_own_model"])

LAYER = """
import tensorflow as tf
class Scores(tf.keras.layers.Layer):
    def call(self, scores):
        scores = scores + (1.0 - tf.linalg.band_part(tf.ones_like(scores), -1, 0)) * -1e9
        return scores / (tf.reduce_max(tf.abs(scores), axis=-1, keepdims=True) + 1e-8)
"""
SCRIPT = """
import tensorflow as tf
from parts import Scores
tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = tf.keras.Sequential([tf.keras.Input((8, 8)), Scores(), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(tf.ones((8, 8, 8)), tf.ones((8, 8, 1)))
"""


def told(directory: Path, texts: dict[str, str], keras: str, *, as_script: bool = True) -> set[tuple[int, str]]:
    """The lines and codes of a script, checked with what it imports, or of all the files of a directory."""
    directory.mkdir()
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    given = ["train.py"] if as_script else sorted(texts)
    stage = (SourceOfProgram if as_script else SourceOfFiles)({(directory / name).absolute(): name for name in given})
    said = list(stage.judge(lambda path: KERASES[keras], CODES, list(stage.facts)))
    assert all(isinstance(item, Finding) for item in said), said
    return {(item.location.line, item.code) for item in said if isinstance(item, Finding) and item.location}


@pytest.mark.sampled(120)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_says_the_same_in_two_files(tmp_path: Path, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    try:
        split = split_program(text)
    except SyntaxError:  # a fixture of MP001
        split = None
    if split is None or f"{path.parent.name}/{path.stem}" in ONLY_OF_THE_FILE_ITSELF:
        return
    script, parts = split
    keras = marks_from_source(text).keras[0]
    together = told(tmp_path / "one", {"train.py": text}, keras)
    assert told(tmp_path / "two", {"train.py": script, "parts.py": parts}, keras) == together


def test_most_programs_with_a_class_are_split() -> None:
    with_class = [text for path in PROGRAMS if "\nclass " in (text := path.read_text(encoding="utf-8"))]
    split = [text for text in with_class if "mp001" not in text and split_program(text) is not None]
    assert len(split) > 0.75 * len(with_class) > 900


@pytest.mark.parametrize("as_script", [True, False], ids=["the script", "the directory"])
@pytest.mark.parametrize(("policy", "codes"), [("mixed_bfloat16", []), ("mixed_float16", ["MP501", "MP502"])])
def test_a_layer_of_another_file_has_the_policy_of_the_program(
    tmp_path: Path, as_script: bool, policy: str, codes: list[str]
) -> None:
    texts = {"train.py": SCRIPT.replace("mixed_bfloat16", policy), "parts.py": LAYER}
    assert [code for _, code in sorted(told(tmp_path / "it", texts, "3", as_script=as_script))] == codes


@pytest.mark.parametrize("as_script", [True, False], ids=["the script", "the directory"])
@pytest.mark.parametrize("text", ["a b", "x = 1\n"], ids=["no Python", "imported where nobody calls it"])
def test_what_it_imports_besides_takes_nothing_away(tmp_path: Path, as_script: bool, text: str) -> None:
    script = f"def later():\n    import besides\n{SCRIPT}".replace("bfloat16", "float16")
    texts = {"train.py": script, "parts.py": LAYER, "besides.py": text}
    codes = {code for _, code in told(tmp_path / "it", texts, "3", as_script=as_script)}
    assert codes - {"MP001"} == {"MP501", "MP502"}


FLOAT32_SCRIPT = SCRIPT.replace('tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")', "")
MIXED = """
import tensorflow as tf
from parts import Other
tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.Input((8, 8)), Other(), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(tf.ones((8, 8, 8)), tf.ones((8, 8, 1)))
"""
OTHER = "class Other(tf.keras.layers.Layer):\n    def call(self, x):\n        return x * 2.0\n"
DEMO = 'if __name__ == "__main__":\n    tf.keras.mixed_precision.set_global_policy("mixed_float16")\n    Other()(1.0)\n'
BUILDER = """
import tensorflow as tf
from parts import Other, Scores
def build(safe="float32"):
    head = tf.keras.layers.Dense(1, dtype=safe)
    return tf.keras.Sequential([tf.keras.Input((8, 8)), Other(), Scores(dtype=safe), head])
"""
BASE = """
import tensorflow as tf
class Shifted(tf.keras.layers.Layer):
    def build(self, shape):
        self.offset = tf.zeros((shape[-1],))
"""
BELOW = """
from base import Shifted
class Scores(Shifted):
    def call(self, x):
        return x + self.offset
"""
GIVEN = 'CFG = {"amp": True}\nif CFG.get("amp"):\n    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")\n'
DIRECTORIES = {
    "a layer that only a float32 script makes": (
        {"train.py": MIXED, "evaluate.py": FLOAT32_SCRIPT, "parts.py": LAYER + OTHER},
        [],
    ),
    "a layer that a mixed script makes too": (
        {"train.py": SCRIPT.replace("bfloat16", "float16"), "evaluate.py": FLOAT32_SCRIPT, "parts.py": LAYER + OTHER},
        ["MP501", "MP502"],
    ),
    "a file that tries its layers under a mixed policy": (
        {"train.py": FLOAT32_SCRIPT, "parts.py": LAYER + OTHER + DEMO},
        [],
    ),
    "a layer whose dtype a caller chooses": (
        {
            "train.py": MIXED.replace("from parts import Other", "from build import build").replace(
                "tf.keras.Sequential", "build()\nother = tf.keras.Sequential"
            ),
            "build.py": BUILDER,
            "parts.py": LAYER + OTHER,
        },
        [],
    ),
    "a layer whose base class is built in another file": (
        {"train.py": SCRIPT, "parts.py": BELOW, "base.py": BASE},
        ["MP202"],
    ),
    "a policy that a table of settings asks for": (
        {
            "train.py": SCRIPT.replace('tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")\n', GIVEN).replace(
                ', dtype="float32"', ""
            ),
            "parts.py": LAYER,
        },
        ["MP201"],
    ),
}


@pytest.mark.parametrize(("texts", "codes"), DIRECTORIES.values(), ids=DIRECTORIES)
def test_layers_that_scripts_share(tmp_path: Path, texts: dict[str, str], codes: list[str]) -> None:
    assert sorted({code for _, code in told(tmp_path / "it", texts, "3", as_script=False)}) == codes


def test_what_is_called_where_nobody_calls_is_told_where_it_stands(tmp_path: Path) -> None:
    """Of a file that is imported there alone the script's walk is all there is."""
    function = "import tensorflow as tf\ndef wrap(o):\n    return tf.keras.mixed_precision.LossScaleOptimizer(o, 'x')\n"
    script = f"{SCRIPT}def later(o):\n    from besides import wrap\n    return wrap(o)\n".replace("bfloat16", "float16")
    texts = {"train.py": script, "parts.py": LAYER, "besides.py": function}
    assert (3, "MP310") in told(tmp_path / "it", texts, "3")


def test_a_private_name_is_told_in_each_file_that_imports_it(tmp_path: Path) -> None:
    private = "from keras.src.dtype_policies import dtype_policy\n"
    texts = {"train.py": f"{private}import parts\n", "parts.py": f"\n\n{private}"}
    assert told(tmp_path / "it", texts, "3") == {(1, "MP103"), (3, "MP103")}


STEP_GIVEN = """
import tensorflow as tf
import tf_keras as keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])


def step(data):
    x, y = data
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((CAST(model(x)) - tf.cast(y, tf.float32)) ** 2)
        scaled = model.optimizer.get_scaled_loss(loss)
    weights = model.trainable_variables
    gradients = model.optimizer.get_unscaled_gradients(tape.gradient(scaled, weights))
    model.optimizer.apply_gradients(zip(gradients, weights))
    return {"loss": loss}


model.compile("adam")
model.train_step = step
model.fit(tf.zeros((4, 4)), tf.zeros((4, 1)))
"""


@pytest.mark.parametrize(("cast", "codes"), [("tf.cast({}, tf.float32)", []), ("tf.square({})", ["MP201"])])
def test_a_step_that_a_model_is_given_says_what_becomes_of_its_output(cast: str, codes: list[str]) -> None:
    text = STEP_GIVEN.replace("CAST(model(x))", cast.format("model(x)"))
    facts = facts_of(text, "tf_keras")
    assert [finding.code for finding in findings_in(facts) if finding.code == "MP201"] == codes
    calls = tuple(call for call in facts.calls if call.context.function is None)
    elsewhere = dataclasses.replace(facts, calls=calls)  # as of a file whose program takes the step in another one
    assert "MP201" not in [finding.code for finding in findings_in(elsewhere)]


PRIVATE_MODULE = """
import keras
from keras.src.dtype_policies import dtype_policy
def net():
    inputs = keras.Input((3,), dtype=dtype_policy.dtype_policy().compute_dtype)
    return keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(inputs))
"""
TRAINING = """
import keras
import numpy as np
from parts import net
keras.config.set_dtype_policy("mixed_float16")
model = net()
model.compile("sgd", "mse")
model.fit(np.ones((4, 3)), np.ones((4, 1)))
"""


def test_a_private_import_is_told_once_whoever_calls_the_function_behind_it(tmp_path: Path) -> None:
    texts = {"parts.py": PRIVATE_MODULE, "train.py": TRAINING}
    assert told(tmp_path / "project", texts, "3", as_script=False) == {(3, "MP103")}
