"""The prefilter of the source stage: it leaves out only files in which no rule finds anything."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from judging import facts_of, findings_in
from marks import marks_from_source
from test_rules_contract import FIXTURE_FILES, FIXTURES

from mpdoctor.diagnosis import diagnose
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.rules.registry import all_rules
from mpdoctor.settings.options import Settings
from mpdoctor.source.import_graph import Outline, Outlines
from mpdoctor.source.prefilter import outlines_from_files
from mpdoctor.source_stage import MOST_TOGETHER, SourceOfFiles, SourceOfProgram, judged_files

CODES = frozenset(rule.code for rule in all_rules())
FIXTURES_WITH_FINDINGS = [path for path in FIXTURE_FILES if path.name.startswith("flagged")]


def found_in(directory: Path, **more: bool) -> list[tuple[str, int, str]]:
    paths = sorted(path for path in directory.rglob("*") if path.suffix in (".py", ".ipynb"))
    files = {path.absolute(): path.relative_to(directory).as_posix() for path in paths}
    stage = SourceOfFiles(files, **more)
    judged = stage.judge(lambda path: Keras(), CODES, list(files.values()))
    return sorted((f.location.path, f.location.line, f.code) for f in judged if isinstance(f, Finding) and f.location)


def written(directory: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = directory / (name + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


@pytest.mark.parametrize("path", FIXTURES_WITH_FINDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_with_a_finding_is_walked(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    kerases = marks_from_source(text).keras
    codes = {finding.code for keras in kerases for finding in findings_in(facts_of(text, keras, path.name))}
    if codes - {"MP001", "MP005"}:  # which need no walk
        assert outlines_from_files([path.absolute()], Path.read_bytes)[path.absolute()].may_speak


def test_a_directory_on_all_cores_finds_what_its_files_hold_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fixture for Keras 3, judged in one process and in three."""
    names = {
        path.parent.name + "/" + path.name
        for path in FIXTURE_FILES
        if "3" in marks_from_source(path.read_text(encoding="utf-8")).keras
    }
    files = {(FIXTURES / name).absolute(): name for name in sorted(names)}
    found = []
    for processes in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda count=processes: count)
        monkeypatch.setattr("mpdoctor.source_stage.WORTH_A_PROCESS", 10_000)
        judged = SourceOfFiles(files).judge(lambda path: Keras(), CODES, sorted(names))
        assert all(isinstance(finding, Finding) for finding in judged)
        found.append(
            [(finding.code, finding.location, finding.message) for finding in judged if isinstance(finding, Finding)]
        )
    assert set(found[0]) ^ set(found[1]) == set()
    assert found[0] == found[1]
    assert len(found[0]) > 50


POLICY = 'import keras\nkeras.mixed_precision.set_global_policy("mixed_float16")\n'
LAYER = """
import tensorflow as tf

class Scale(tf.keras.layers.Layer):
    def call(self, x):
        return x + tf.ones([4])
"""


# A trainer whose caller chooses the precision; its own smoke test is float32.
SWITCHED = f"""\
{LAYER}

def train(mixed):
    if mixed:
        tf.keras.mixed_precision.set_global_policy("mixed_float16")
    model = tf.keras.Sequential([Scale(), tf.keras.layers.Dense(1, dtype="float32")])
    model.compile("adam", "mse")
    model.fit(tf.zeros((4, 4)), tf.zeros((4, 1)))


if __name__ == "__main__":
    train(False)
"""
GONE = "import tensorflow as tf\nscale = tf.keras.mixed_precision.experimental.DynamicLossScale\n"
CHOOSING = "from importlib import import_module\n\n\ndef chosen(name):\n    return import_module({}).Scale\n"
TWO_VERSIONS = {
    "pkg/new": "import keras\nmake = keras.mixed_precision.LossScaleOptimizer\n",
    "pkg/old": GONE + "from .older import make\n",
    "pkg/older": GONE + "make = tf.keras.mixed_precision.LossScaleOptimizer\n",
}
BY_VERSION = "import keras\nif keras.__version__ > '3':\n    from .new import make\nelse:\n    from .old import make\n"
BY_TRYING = "try:\n    from .old import make\nexcept ImportError:\n    from .new import make\n"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param({"layer": LAYER}, [], id="no sign of mixed precision"),
        pytest.param({"main": POLICY + "import layer\n", "layer": LAYER}, [("layer.py", 6, "MP202")], id="imported"),
        pytest.param(
            {"main": POLICY + "from pkg import models\n", "pkg/__init__": "", "pkg/models": "from . import layer\n"}
            | {"pkg/layer": LAYER},
            [("pkg/layer.py", 6, "MP202")],
            id="imported through a package and a file that names no framework",
        ),
        pytest.param(
            {"main": "import layer, setup\n", "setup": POLICY, "layer": LAYER},
            [("layer.py", 6, "MP202")],
            id="a policy set by an import",
        ),
        pytest.param(
            {"layer": "import setup\n" + LAYER, "setup": "def unused():\n    return 1\n" + POLICY},
            [("layer.py", 7, "MP202")],
            id="it imports a file that sets the policy",
        ),
        pytest.param(
            {"main": POLICY + "import sys\nimport pkg\npkg.chosen(sys.argv[1])()\n", "other/plain": LAYER}
            | {"pkg/__init__": CHOOSING.format("'pkg.' + name"), "pkg/first": LAYER},
            [("pkg/first.py", 6, "MP202")],
            id="a module that the command line chooses from a package",
        ),
        pytest.param(
            {"main": POLICY + "import sys\nfrom pkg.choice import chosen\nchosen(sys.argv[1])()\n", "pkg/__init__": ""}
            | {"pkg/choice": CHOOSING.format("f'.{name}_layer', __package__"), "pkg/a_layer": LAYER, "pkg/b": LAYER},
            [("pkg/a_layer.py", 6, "MP202")],
            id="the same by a name of which both ends are known",
        ),
        pytest.param(
            {
                "main": "import keras, wrap\n\n\nopt = wrap.Wrapper(keras.optimizers.Adam(), dynamic=False)\n",
                "wrap": "import keras\n\nWrapper = keras.optimizers.LossScaleOptimizer\n",
            },
            [("main.py", 4, "MP310")],
            id="a name that a sibling passes on",
        ),
        pytest.param(
            {
                "main": "import keras\nimport pkg\nopt = pkg.Wrapper(keras.optimizers.Adam(), dynamic=False)\n",
                "pkg/__init__": "from .sub import Wrapper\n",
                "pkg/sub/__init__": "from .wrap import *\n",
                "pkg/sub/wrap": "import keras\n\nWrapper = keras.optimizers.LossScaleOptimizer\n",
            },
            [("main.py", 3, "MP310")],
            id="a name that packages hand on",
        ),
        pytest.param(TWO_VERSIONS | {"pkg/__init__": BY_VERSION}, [], id="one of two versions, by a version"),
        pytest.param(TWO_VERSIONS | {"pkg/__init__": BY_TRYING}, [], id="one of two versions, by trying"),
        pytest.param(
            TWO_VERSIONS | {"pkg/__init__": BY_VERSION + GONE},
            [("pkg/__init__.py", 7, "MP101")],
            id="the file that asks, behind its question",
        ),
        pytest.param(
            TWO_VERSIONS | {"pkg/__init__": BY_VERSION, "main": POLICY + "from pkg.old import make\n"},
            [("pkg/old.py", 2, "MP101"), ("pkg/older.py", 2, "MP101")],
            id="one of two versions, and imported by another file without asking",
        ),
        pytest.param({"broken": "def f(:\n"}, [("broken.py", 1, "MP001")], id="not even Python"),
        pytest.param(
            {"train": POLICY + "from parts import build\nmodel = build()\n", "parts": "import keras\n" + LAYER}
            | {"evaluate": "import keras\nfrom parts import Scale\nkeras.Sequential([Scale()])\n"},
            [],
            id="a layer that a script makes in float32, which imports what the mixed one does",
        ),
        pytest.param(
            {"train": SWITCHED, "bench": "import train\n\nfor mixed in (False, True):\n    train.train(mixed)\n"},
            [("train.py", 6, "MP202")],
            id="a trainer that is run in float32 by itself, and mixed by a file that names no framework",
        ),
        pytest.param(
            {"train": SWITCHED, "test_train": "import train\n\ndef test_it():\n    train.train(mixed=True)\n"},
            [("train.py", 6, "MP202")],
            id="the same in a test",
        ),
        pytest.param(
            {"train": SWITCHED, "test_train": "import train\n\ndef test_it(mixed):\n    train.train(mixed)\n"},
            [("train.py", 6, "MP202")],
            id="the same in a test that is run for both",
        ),
        pytest.param(
            {"train": SWITCHED, "test_train": "import train\n\ndef test_it():\n    train.train(mixed=False)\n"},
            [],
            id="a trainer that is run in float32 by its test as well",
        ),
    ],
)
def test_what_is_walked(tmp_path: Path, texts: dict[str, str], expected: list[tuple[str, int, str]]) -> None:
    assert found_in(written(tmp_path, texts)) == expected


WRAPPED = """
import keras
from layer import Scale

class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.shift = Scale()

    def compile(self, optimizer, **more):
        super().compile(keras.mixed_precision.LossScaleOptimizer(optimizer), **more)
"""
REWRITES = """
import tensorflow as tf
from net import Net
tf.config.optimizer.set_experimental_options({"auto_mixed_precision": ARGS.amp})
"""


@pytest.mark.parametrize(
    ("beside", "is_told"),
    [("", True), (REWRITES, False), (REWRITES + "tf.keras.mixed_precision.set_global_policy(ARGS.policy)\n", True)],
    ids=["nothing", "graphs are rewritten", "a policy too"],
)
def test_where_graphs_are_rewritten_a_wrapped_optimizer_is_no_sign(tmp_path: Path, beside: str, is_told: bool) -> None:
    """Of 16-bit layers in another file."""
    found = found_in(written(tmp_path, {"net": WRAPPED, "layer": LAYER, "train": beside}))
    assert (("layer.py", 6, "MP202") in found) is is_told


def test_assume_mixed_walks_whatever_names_a_framework(tmp_path: Path) -> None:
    assert found_in(written(tmp_path, {"layer": LAYER}), assume_mixed=True) == [("layer.py", 6, "MP202")]


@pytest.mark.parametrize(
    ("making", "is_told"),
    [
        ("", True),
        ("dtype='float32'", False),
        ("dtype='mixed_float16'", True),
    ],
    ids=["by the policy", "in float32", "in float16"],
)
def test_assume_mixed_holds_for_what_scripts_make_without_a_policy(tmp_path: Path, making: str, is_told: bool) -> None:
    layer = LAYER.replace(
        "    def call", "    def __init__(self, **options):\n        super().__init__(**options)\n\n    def call"
    )
    train = f"import keras\nfrom layer import Scale\nkeras.Sequential([Scale({making})])\n"
    directory = written(tmp_path, {"layer": layer, "train": train})
    assert (("layer.py", 9, "MP202") in found_in(directory, assume_mixed=True)) is is_told


def test_under_an_assumed_policy_small_programs_and_directories_say_what_a_program_says_alone(tmp_path: Path) -> None:
    """The division is told where the dtype of what the layer of another file returns is known."""
    layer = LAYER.replace("        return ", "        return 2.0 * x\n        return ")
    train = """
import keras
from layer import Scale
class Norm(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.scale = Scale()

    def call(self, x):
        x = self.scale(x)
        return x / (keras.ops.sum(x) + 1e-9)
keras.Sequential([Norm(), keras.layers.Dense(1, dtype="float32")])
"""
    small = written(tmp_path / "small", {"layer": layer, "train": train})
    assert ("train.py", 11, "MP502") in found_in(small, assume_mixed=True)
    beside = {f"other_{number}": "import keras\n" for number in range(MOST_TOGETHER)}
    large = written(tmp_path / "large", {"layer": layer, "train": train, **beside})
    assert ("train.py", 11, "MP502") in found_in(large, assume_mixed=True)
    program = {"layer": layer, "train": "".join(f"import {name}\n" for name in beside) + train}
    both_large = written(tmp_path / "both_large", {**program, **beside})
    assert "MP502" not in [code for _, _, code in found_in(both_large, assume_mixed=True)]


MODEL = """
import keras
layers = [keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(2, activation="softmax")]
model = keras.Sequential(layers)
"""
TRAINING = "model.compile('adam', 'mse')\nmodel.fit([1.0], [1.0])\n"
INSIDE = """
import keras
import tensorflow as tf

class Inner(keras.layers.Layer):
    def call(self, x):
        return x + tf.random.normal([4, 8])

class Caller(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def call(self, ids):
        return self.inner(keras.ops.ones((4, 8)))
"""
PROGRAMS = {
    "a layer that another one makes, under the policy of the script": {
        "train": POLICY + "from models import Caller\nmodel = keras.Sequential([Caller()])\n" + TRAINING,
        "models": INSIDE,
    },
    "a model at the top level of what is imported after the policy": {
        "train": POLICY + "from models import model\n" + TRAINING,
        "models": MODEL,
    },
    "the same, and an import sets the policy": {
        "train": "import settings\nfrom models import model\n" + TRAINING,
        "settings": POLICY,
        "models": MODEL,
    },
    "one import sets the policy and hands on the model": {
        "train": "from zoo import model\n" + TRAINING,
        "zoo/__init__": POLICY + "from .tower import model\n",
        "zoo/tower": MODEL,
    },
    "a policy too late for what was imported": {
        "train": "import keras\nfrom models import model\n" + POLICY + TRAINING,
        "models": MODEL,
    },
    "a policy set in the main function": {
        "train": "import keras\nimport models\n\ndef main():\n"
        "    keras.mixed_precision.set_global_policy('mixed_float16')\n"
        "    model = models.build()\n    model.compile('adam', 'mse')\n\nmain()\n",
        "models": MODEL.replace("\n", "\n    ").replace("\n    import keras", "import keras\ndef build():")
        + "return model\n",
    },
    "a script that runs as `__main__`, and that a test imports": {
        "train": "import sys\nimport keras\nfrom models import Caller\n\ndef main():\n    if '--half' in sys.argv:\n"
        "        keras.mixed_precision.set_global_policy('mixed_float16')\n    model = keras.Sequential([Caller()])\n"
        "    model.compile('adam', 'mse')\n    model.fit([1.0], [1.0])\n\nif __name__ == '__main__':\n    main()\n",
        "models": INSIDE,
        "test_train": "import train\n\ndef test_main():\n    assert train.main\n",
    },
    "a program of many files": {
        "train": POLICY + "import parts\nfrom models import Caller\nmodel = keras.Sequential([Caller()])\n" + TRAINING,
        "models": INSIDE,
        "parts/__init__": "".join(f"from . import part{number}\n" for number in range(80)),
        **{f"parts/part{number}": "import numpy\n" for number in range(80)},
    },
}


def alone(directory: Path, name: str) -> list[tuple[str, int, str]]:
    """What a check of this script alone says."""
    stage = SourceOfProgram({(directory / name).absolute(): name})
    judged = stage.judge(lambda path: Keras(), CODES, list(stage.facts))
    return sorted((f.location.path, f.location.line, f.code) for f in judged if isinstance(f, Finding) and f.location)


@pytest.mark.parametrize("texts", PROGRAMS.values(), ids=PROGRAMS)
def test_a_directory_says_what_its_one_program_says(tmp_path: Path, texts: dict[str, str]) -> None:
    said = alone(written(tmp_path, texts), "train.py")
    assert said
    assert found_in(tmp_path) == said


@pytest.mark.parametrize("form", ["lines", "one string", "all in one line"])
@pytest.mark.parametrize("texts", PROGRAMS.values(), ids=PROGRAMS)
def test_a_directory_says_of_a_notebook_what_it_says_of_a_script(
    tmp_path: Path, texts: dict[str, str], form: str
) -> None:
    written(tmp_path, {name: text for name, text in texts.items() if name != "train"})
    lines = texts["train"].splitlines(keepends=True)
    cell = {"cell_type": "code", "source": "".join(lines) if form == "one string" else lines}
    (tmp_path / "train.ipynb").write_text(
        json.dumps({"cells": [cell]}, indent=None if form == "all in one line" else 1)
    )
    said = alone(tmp_path, "train.ipynb")
    assert said
    assert set(found_in(tmp_path)) >= set(said)


BODIES = (
    "    def call(self, x):\n        return x + tf.random.normal([4, 8])\n",
    "    def __init__(self):\n        super().__init__()\n        self.inner = {inner}()\n\n"
    "    def call(self, x):\n        return self.inner(tf.ones([4, 8]))\n",
    "    def call(self, x):\n        return x / (tf.reduce_sum(x) + 1e-8)\n",
    "    def build(self, shape):\n        self.w = tf.Variable(tf.ones([8]))\n\n"
    "    def call(self, x):\n        return x * self.w\n",
    "    def __init__(self):\n        super().__init__(dtype='float32')\n\n"
    "    def call(self, x):\n        return x * tf.ones([8])\n",
)
SET = POLICY.splitlines(keepends=True)[1]


def made_up_tree(rng: random.Random) -> dict[str, str]:
    """Modules with layers, some of which make those of others, and one or two scripts that use them under a policy that
    is set first, later, by an import, or never."""
    texts: dict[str, str] = {}
    classes: dict[str, list[str]] = {}
    for number, name in enumerate(("alpha", "beta", "gamma")[: rng.randint(1, 3)]):
        above = [other for other in texts if rng.random() < 0.5]
        text = "import keras\nimport tensorflow as tf\n" + "".join(f"from {other} import *\n" for other in above)
        text += SET if rng.random() < 0.2 else ""
        classes[name] = [f"Layer{number}{letter}" for letter in "AB"]
        for layer_class in classes[name]:
            inner = rng.choice(
                [inner_class for other in above for inner_class in classes[other]] or ["keras.layers.Flatten"]
            )
            text += f"class {layer_class}(keras.layers.Layer):\n" + rng.choice(BODIES).format(inner=inner)
        text += MODEL if rng.random() < 0.3 else f"def build():\n    return keras.Sequential([{layer_class}()])\n"
        texts[name] = text
    for script in ("train", "other")[: rng.randint(1, 2)]:
        used = rng.sample(list(classes), rng.randint(1, len(classes)))
        lines = ["import keras\n", *(f"from {name} import *\n" for name in used)]
        body = ["model = build()\n"] if "def build" in texts[used[-1]] else []
        taken = [layer_class for name in used for layer_class in classes[name] if rng.random() < 0.5]
        body += [f"y = {layer_class}()(keras.ops.ones((4, 8)))\n" for layer_class in taken]
        body += [TRAINING.splitlines(keepends=True)[0]] if body or "model =" in texts[used[-1]] else []
        place = rng.randint(0, len(lines) + 1)
        if 0 < place <= len(lines):
            lines.insert(place, SET)
        elif place:
            body.insert(0, SET)
        if body and rng.random() < 0.4:
            body = ["def main():\n", *(f"    {line}" for line in body), "main()\n"]
        texts[script] = "".join([*lines, *body])
    return texts


def test_a_directory_says_all_that_its_programs_say_alone(tmp_path: Path) -> None:
    said = 0
    for seed in range(60):
        texts = made_up_tree(random.Random(seed))
        directory = written(tmp_path / str(seed), texts)
        found = set(found_in(directory))
        for script in {"train", "other"} & texts.keys():
            expected = set(alone(directory, f"{script}.py"))
            assert expected <= found, (seed, texts)
            said += len(expected)
    assert said > 50


def test_a_file_of_two_programs_is_told_of_once_and_its_comments_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written(tmp_path, {"train": POLICY + "import layer\nlayer.Scale()\n", "layer": LAYER}))
    (tmp_path / "other.py").write_text((tmp_path / "train.py").read_text())
    for targets in (["."], ["train.py", "layer.py"], ["layer.py", "train.py"], ["train.py", "layer.py", "other.py"]):
        assert [(f.code, f.location and f.location.line) for f in diagnosed(targets).findings] == [("MP202", 6)]
    (tmp_path / "layer.py").write_text(LAYER.replace("ones([4])", "ones([4])  # mpdoctor: ignore[MP202]"))
    for targets in (["."], ["train.py", "layer.py"], ["layer.py", "train.py"]):
        assert [f.code for f in diagnosed(targets).findings] == []


def diagnosed(targets: list[str]) -> Diagnosis:
    given = tuple(map(target_from_text, targets))
    return diagnose(Settings(given, static=True, cache=False, keras=Keras()), SilentProgress())


NORM = """
import keras
import tensorflow as tf

class Norm(keras.layers.Layer):
    def call(self, x):
        return x / (tf.reduce_sum(x) + 1e-8)
"""
MADE = {
    "in float32": ("Norm(dtype='float32')", []),
    "by a policy": ("Norm(dtype=keras.DTypePolicy('float32'))", []),
    "by keywords": ("Norm(**{'dtype': 'float32'})", []),
    "under the policy": ("Norm()", ["MP502", "MP503"]),
    "both ways": ("Norm(dtype='float32'), Norm()", ["MP502", "MP503"]),
    "in another dtype": ("Norm(dtype='mixed_float16')", ["MP502", "MP503"]),
}


@pytest.mark.parametrize(("made", "expected"), MADE.values(), ids=MADE)
def test_a_layer_that_the_project_makes_in_float32_only_is_float32(
    tmp_path: Path, made: str, expected: list[str]
) -> None:
    train = POLICY + f"from layers import Norm\nlayers = [{made}]\n"
    written(tmp_path, {"train": train, "layers": NORM})
    assert [code for *_, code in found_in(tmp_path)] == [code for *_, code in alone(tmp_path, "train.py")] == expected
    written(tmp_path, {"other": POLICY + "from layers import Norm\nlayer = Norm()\n"})
    assert [code for *_, code in found_in(tmp_path)] == ["MP502", "MP503"]


PENALTY = """
import keras
import tensorflow as tf


class Gan(keras.Model):
    def penalty(self, images):
        with tf.GradientTape() as inner:
            inner.watch(images)
            scores = self.critic(images)
        return tf.norm(inner.gradient(scores, images))

    def train_step(self, images):
        with tf.GradientTape() as tape:
            loss = self.optimizer.scale_loss(self.penalty(images))
        self.optimizer.apply(tape.gradient(loss, self.critic.trainable_variables), self.critic.trainable_variables)
        return {}
"""
MINIMIZES = """
import keras


class Net(keras.Model):
    def train_step(self, data):
        self.optimizer.minimize(lambda: 0.0, self.trainable_variables)
        return {}
"""
OWN_OPTIMIZER = MINIMIZES.replace("    def train", "    optimizer = None\n\n    def train")
TRAINS = "import {}\nfrom net import *\n"
SETS = "import keras\n\ndef set_up(name='mixed_float16'):\n    keras.mixed_precision.set_global_policy(name)\n"
CALLED = TRAINS.format("setup") + "setup.set_up({})\n"
ELSEWHERE = {
    "MP413, imported": ({"main": TRAINS.format("policy"), "policy": POLICY, "net": PENALTY}, ["MP413"]),
    "MP413, called": ({"main": CALLED.format(""), "setup": SETS, "net": PENALTY}, ["MP413"]),
    "bfloat16": ({"main": CALLED.format("'mixed_bfloat16'"), "setup": SETS, "net": PENALTY}, []),
    "unknown": ({"main": "import sys\n" + CALLED.format("sys.argv[1]"), "setup": SETS, "net": PENALTY}, []),
    "on some path": (
        {"main": "import sys\n" + TRAINS.format("setup") + "if sys.argv[1:]:\n    setup.set_up()\n", "setup": SETS}
        | {"net": PENALTY},
        ["MP413"],
    ),
    "by two programs": (
        {"main": TRAINS.format("policy"), "policy": POLICY, "net": PENALTY}
        | {"other": CALLED.format("'float32'"), "setup": SETS},
        ["MP413"],
    ),
    "MP407, imported": ({"main": TRAINS.format("policy"), "policy": POLICY, "net": MINIMIZES}, ["MP407"]),
    "MP407, called": ({"main": CALLED.format(""), "setup": SETS, "net": MINIMIZES}, ["MP407"]),
    "its own optimizer": ({"main": TRAINS.format("policy"), "policy": POLICY, "net": OWN_OPTIMIZER}, []),
    "no mixed precision": ({"main": TRAINS.format("math"), "net": MINIMIZES}, []),
}


@pytest.mark.parametrize(("texts", "expected"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_the_policy_of_a_training_step_may_be_set_in_another_file(
    tmp_path: Path, texts: dict[str, str], expected: list[str]
) -> None:
    assert [code for path, _, code in found_in(written(tmp_path, texts)) if path == "net.py"] == expected


@pytest.mark.parametrize("count", [1, 6])
def test_however_many_imported_files_show_mixed_precision_all_rules_look_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    part = """import tensorflow as tf
layer = tf.keras.layers.Dense(1, dtype="mixed_float16")
def loss(scores):
    return scores / (tf.reduce_max(tf.cast(scores, "float16")) + 1e-8)
"""
    script = "".join(f"import part{number}\n" for number in range(count)) + "import tensorflow as tf\n"
    written(tmp_path, {"train": script} | {f"part{number}": part for number in range(count)})
    looks: list[int] = []
    real = judged_files.findings_from_facts

    def counted(kind: str, facts: Any, keras: Keras | None, chosen: Callable[[Any], bool]) -> Iterator[Any]:
        looks.append(sum(map(chosen, all_rules())))
        return real(kind, facts, keras, chosen)

    monkeypatch.setattr(judged_files, "findings_from_facts", counted)
    path = tmp_path / "train.py"
    stage = SourceOfProgram({path: "train.py"})
    said = stage.judge(lambda shown: Keras(), CODES, list(stage.facts))
    assert sorted(f.location.path for f in said if isinstance(f, Finding) and f.location and f.code == "MP502") == [
        f"part{number}.py" for number in range(count)
    ]
    assert looks[:2] == [len(CODES)] * 2
    assert all(some < 5 for some in looks[2:])


class Told:
    """What a progress bar is told."""

    def __init__(self) -> None:
        self.stages: dict[str, list[tuple[int, int]]] = {"": []}

    def stage(self, name: str) -> None:
        self.stages[name] = []

    def steps(self, done: int, total: int) -> None:
        self.stages[[*self.stages][-1]].append((done, total))

    def close(self) -> None: ...


@pytest.mark.parametrize("processes", [1, 2])
def test_progress_counts_the_files_that_are_read_and_then_judged(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpdoctor.source_stage.SourceStage._processes", lambda stage: processes)
    text = 'import keras\nkeras.mixed_precision.set_global_policy("mixed_float16")\n'
    written(tmp_path, {f"train{number}": text for number in range(20)} | {"plain": "x = 1\n"})
    files = {path.absolute(): path.name for path in sorted(tmp_path.iterdir())}
    told = Told()
    SourceOfFiles(files, progress=told).judge(lambda path: Keras(), CODES, list(files.values()))
    for steps in told.stages.values():
        done = [number for number, _ in steps]
        assert {total for _, total in steps} == {21} and done == sorted(done) and done[-1] == 21
    assert [*told.stages] == ["", "judging the source"]


@pytest.mark.parametrize("seed", range(20))
def test_what_files_reach_is_what_a_search_from_each_finds(seed: int) -> None:
    chance = random.Random(seed)
    paths = [Path(f"/p/{number}.py") for number in range(12)]
    outlines = Outlines()
    for path in paths:
        imports = frozenset(chance.sample(paths, chance.choice([0, 0, 1, 1, 2, 3]))) - {path}
        outlines[path] = Outline(False, False, False, imports, 0, b"")
    for path in paths:
        found, waiting = set[Path](), [path]
        while waiting:
            new = outlines[waiting.pop()].imports - found
            found |= new
            waiting += new
        assert outlines.reached_from([path]) == found
