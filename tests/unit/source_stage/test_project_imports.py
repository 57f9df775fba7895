"""A script in `scripts/` or `examples/` imports the packages of the project around it: from its root, or from `src`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding
from mpdoctor.rules.registry import all_rules
from mpdoctor.source_stage import SourceOfFiles, SourceOfProgram

FIXTURES = Path(__file__).parents[3] / "fixtures"
CODES = frozenset(rule.code for rule in all_rules())
POLICY = 'import keras\nkeras.mixed_precision.set_global_policy("mixed_float16")\n'
BUILD = """
import keras
def build():
    inputs = keras.Input((4,))
    return keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(inputs))
"""
TRAINING = 'model = build()\nmodel.compile("adam", "mse")\nmodel.fit([1.0], [1.0])\n'
SCRIPT = POLICY + "from mine.models import build\n" + TRAINING
DECLARED = {"pyproject.toml": "[project]\nname = 'mine'\n"}

FOLLOWED = {
    "a package in the root": (DECLARED | {"scripts/train.py": SCRIPT}, "mine/"),
    "a package in src": (DECLARED | {"examples/train.py": SCRIPT}, "src/mine/"),
    "a script two folders down": (DECLARED | {"tools/mnist/train.py": SCRIPT}, "src/mine/"),
    "a script that is a package's module": (DECLARED | {"tests/__init__.py": "", "tests/train.py": SCRIPT}, "mine/"),
    "a setup.py": ({"setup.py": "", "bin/train.py": SCRIPT}, "mine/"),
    "a repository without any": ({".git/HEAD": "", "bin/train.py": SCRIPT}, "mine/"),
    "the examples declare what they need": (
        {".git/HEAD": "", "examples/pyproject.toml": "", "examples/mnist/train.py": SCRIPT},
        "mine/",
    ),
    "the package imports another one beside it": (
        DECLARED
        | {"scripts/train.py": POLICY + "from start import build\n" + TRAINING}
        | {"start/__init__.py": "from mine.models import build\n"},
        "mine/",
    ),
    "the folder above, though nothing says that a project is there": ({"scripts/train.py": SCRIPT}, "mine/"),
    "one of several programs in a repository": (
        {".git/HEAD": "", "classification/tools/train.py": SCRIPT},
        "classification/mine/",
    ),
    "a package of its own beside the scripts": (
        {".git/HEAD": "", "package/setup.py": "", "scripts/deep/train.py": SCRIPT},
        "package/mine/",
    ),
    "a package named after a framework": (
        DECLARED | {"scripts/train.py": SCRIPT.replace("mine.", "keras_mine.")},
        "keras_mine/",
    ),
    "KerasHub's own repository": (
        DECLARED | {"scripts/train.py": SCRIPT.replace("mine.", "keras_hub.")},
        "keras_hub/",
    ),
}
NOT_FOLLOWED = {
    "a library whose names rules know": (
        DECLARED | {"scripts/train.py": SCRIPT.replace("mine.", "tensorflow_text.")},
        "tensorflow_text/",
    ),
    "a folder beside the scripts that is no package": (
        {".git/HEAD": "", "package/README.md": "", "scripts/deep/train.py": SCRIPT},
        "package/mine/",
    ),
    "one of too many packages in a repository": (
        {".git/HEAD": "", "package/setup.py": "", "scripts/deep/train.py": SCRIPT}
        | {f"package_{number}/setup.py": "" for number in range(8)},
        "package/mine/",
    ),
    "two folders above, and nothing says that a project is there": ({"scripts/mnist/train.py": SCRIPT}, "mine/"),
    "the project ends at its repository": (
        {"pyproject.toml": "", "in/.git/HEAD": "", "in/a/train.py": SCRIPT},
        "mine/",
    ),
    "what lies beside the script comes first": (
        DECLARED | {"scripts/train.py": SCRIPT, "scripts/mine/models.py": "def build(): return object()\n"},
        "mine/",
    ),
    "the nearer project comes first": (
        {".git/HEAD": "", "inner/setup.py": "", "inner/bin/train.py": SCRIPT}
        | {"inner/mine/__init__.py": "", "inner/mine/models.py": "def build(): return object()\n"},
        "mine/",
    ),
}


def written(directory: Path, texts: dict[str, str], place: str) -> Path:
    models = {f"{place}__init__.py": "", f"{place}models.py": BUILD}
    for name, text in (models | texts).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def told(directory: Path, *, alone: bool) -> list[tuple[str, str]]:
    """What is said of the script, or of all files of the directory."""
    pattern = "train.py" if alone else "*.py"
    files = {path.absolute(): path.relative_to(directory).as_posix() for path in sorted(directory.rglob(pattern))}
    stage = (SourceOfProgram if alone else SourceOfFiles)(files)
    judged = stage.judge(lambda path: Keras(), CODES, list(stage.facts))
    return sorted((Path(f.location.path).name, f.code) for f in judged if isinstance(f, Finding) and f.location)


@pytest.mark.parametrize("alone", [True, False], ids=["the script", "the directory"])
@pytest.mark.parametrize(("texts", "place"), FOLLOWED.values(), ids=FOLLOWED)
def test_it_is_followed(tmp_path: Path, texts: dict[str, str], place: str, alone: bool) -> None:
    assert told(written(tmp_path, texts, place), alone=alone) == [("models.py", "MP201")]


@pytest.mark.parametrize("alone", [True, False], ids=["the script", "the directory"])
@pytest.mark.parametrize(("texts", "place"), NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_it_is_not_followed(tmp_path: Path, texts: dict[str, str], place: str, alone: bool) -> None:
    assert told(written(tmp_path, texts, place), alone=alone) == []


@pytest.mark.parametrize("name", ["keras", "tensorflow", "tf_keras"])
def test_the_frameworks_own_repository_is_a_library_to_its_scripts(tmp_path: Path, name: str) -> None:
    script = f"import {name}\n{'keras = tensorflow.keras' if name == 'tensorflow' else f'keras = {name}'}\n"
    script += 'keras.mixed_precision.set_policy("mixed_float16")\n'
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "train.py").write_text(script)
    assert told(tmp_path, alone=True) == [("train.py", "MP101")]


PRIVATE = "from keras.src import optimizers\nprint(optimizers.LossScaleOptimizer)\n"


@pytest.mark.parametrize("alone", [True, False], ids=["the script", "the directory"])
@pytest.mark.parametrize(
    ("held", "is_told"), [("keras/src/optimizers/__init__.py", False), ("keras/src.py", False), ("keras/own.py", True)]
)
def test_private_names_are_told_only_outside_of_the_library_itself(
    tmp_path: Path, held: str, is_told: bool, alone: bool
) -> None:
    for name, text in {"pyproject.toml": "", "integration_tests/train.py": PRIVATE, held: ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for folder in {(tmp_path / held).parent, tmp_path / "keras"}:
        (folder / "__init__.py").touch()
    if held.startswith("keras/src/"):
        (tmp_path / "keras/src/__init__.py").touch()
    assert told(tmp_path, alone=alone) == [("train.py", "MP103")] * is_told


def test_our_own_optimizer_is_known_where_its_package_lies_in_the_project(tmp_path: Path) -> None:
    """Keras 3's own would be told under a strategy of several replicas."""
    script = POLICY + "import tensorflow as tf\nfrom mpdoctor.training import LossScaleOptimizer\n"
    script += "with tf.distribute.MirroredStrategy().scope():\n    model = keras.Sequential([keras.layers.Dense(1)])\n"
    script += "    model.compile(LossScaleOptimizer(keras.optimizers.Adam()), 'mse')\nmodel.fit([1.0], [1.0])\n"
    keras_own = "LossScaleOptimizer = keras.optimizers.LossScaleOptimizer"
    for name in ("setup.py", "mpdoctor/__init__.py", "mpdoctor/training.py", "tools/train.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"import keras\n{keras_own}\n" if name.endswith("training.py") else "")
    (tmp_path / "tools" / "train.py").write_text(script)
    assert ("train.py", "MP315") not in told(tmp_path, alone=True)


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside", {}, "mine/")
    project = tmp_path / "project"
    (project / "scripts").mkdir(parents=True)
    (project / "pyproject.toml").write_text("")
    (project / "scripts" / "train.py").write_text(SCRIPT)
    (project / "mine").symlink_to(outside / "mine")
    assert told(project, alone=True) == []


UNIT = """
import tensorflow as tf
class Unit(tf.keras.layers.Layer):
    def call(self, x):
        return x / (tf.reduce_max(tf.abs(x), axis=-1, keepdims=True) + 1e-8)
def images(dtype):
    return tf.zeros((2, 2), dtype)
"""
IMPORTS = "import tensorflow as tf\nfrom unit import Unit, images\n"
FLOATX = "tf.keras.backend.set_floatx('float16')"
WRAPPER = "tf.keras.mixed_precision.LossScaleOptimizer"
SET = "tf.keras.mixed_precision.set_global_policy('mixed_float16')"
# What imports the layer, and whether that tells of the layer that it computes in 16 bits.
IMPORTERS = {
    "floatx in a test of something else": (
        f"def test_images():\n    {FLOATX}\n    assert images(tf.keras.backend.floatx()).dtype == 'float16'\n",
        False,
    ),
    "floatx in a test of the layer": (
        f"def test_unit():\n    {FLOATX}\n    tf.keras.Sequential([Unit()])(tf.ones((2, 2)))\n",
        True,
    ),
    "the question for a wrapper": (
        f"def inner(optimizer):\n    return optimizer.inner if isinstance(optimizer, {WRAPPER}) else optimizer\n",
        False,
    ),
    "the question for a wrapper that was imported": (
        "from tensorflow.keras.mixed_precision import LossScaleOptimizer\n"
        "def is_wrapped(optimizer):\n    return isinstance(optimizer, (LossScaleOptimizer,))\n",
        False,
    ),
    "a wrapper that is made where there is none": (
        f"def wrapped(inner):\n    return inner if isinstance(inner, {WRAPPER}) else {WRAPPER}(inner)\n",
        True,
    ),
    "a private method that nothing calls": (
        f"class Trainer:\n    def fit(self):\n        Unit()  # self._half()\n    def _half(self):\n        {SET}\n",
        False,
    ),
    "a private method": (
        f"class Trainer:\n    def _half(self):\n        {SET}\n    def fit(self):\n        self._half()\n",
        True,
    ),
    "a method for others to call": (f"class Trainer:\n    def half(self):\n        {SET}\n", True),
}


@pytest.mark.parametrize(("importer", "is_mixed"), IMPORTERS.values(), ids=IMPORTERS)
def test_what_tells_of_an_imported_file_that_it_computes_in_16_bits(
    tmp_path: Path, importer: str, is_mixed: bool
) -> None:
    for name, text in {"unit.py": UNIT, "importer.py": IMPORTS + importer}.items():
        (tmp_path / name).write_text(text)
    assert (("unit.py", "MP502") in told(tmp_path, alone=False)) is is_mixed


RATES = """
import keras
class Rate(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(self.model.optimizer.lr)
class Longer(Rate):
    pass
class Quiet(keras.callbacks.Callback):
    pass
"""


@pytest.mark.parametrize(("used", "codes"), [("Rate()", ["MP301"]), ("Longer()", ["MP301"]), ("Quiet()", [])])
def test_a_callback_of_an_imported_file_matters_to_the_programs_that_make_it(
    tmp_path: Path, used: str, codes: list[str]
) -> None:
    script = SCRIPT.replace("model.fit(", f"from mine.rates import *\nrate = {used}\nmodel.fit(")
    directory = written(tmp_path, DECLARED | {"scripts/train.py": script, "mine/rates.py": RATES}, "mine/")
    assert [code for name, code in told(directory, alone=True) if name == "rates.py"] == codes


AGENT = """
import keras
import tensorflow as tf
class Agent:
    def __init__(self):
        self.network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype=None)])
        self.optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    def train(self, states):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.cast(self.network(states), tf.float32) ** 2)
            scaled = self.optimizer.scale_loss(loss)
        weights = self.network.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights))
"""
RUN = "import tensorflow as tf\nfrom mine.agents import Agent\nAgent().train(tf.ones((8, 4)))\n"
SLOWLY = RUN + 'print("without mixed precision")\n'


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", ""])
def test_a_wrapper_of_a_library_has_something_to_do_in_one_of_its_programs(tmp_path: Path, policy: str) -> None:
    """Where any of the programs that import its file sets mixed_float16, the others share a wrapper that is right."""
    setting = f'import keras\nkeras.mixed_precision.set_global_policy("{policy}")\n' if policy else ""
    texts = {"run.py": setting + RUN, "run_slowly.py": SLOWLY, "mine/agents.py": AGENT}
    (tmp_path / "mine").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    stage = SourceOfFiles({tmp_path / name: name for name in texts})
    said = stage.judge(lambda path: Keras(), frozenset(("MP309",)), list(texts))
    assert bool(said) == (policy != "mixed_float16")


@pytest.mark.parametrize("name", ["flagged_compiled_for_a_sibling", "clean_compiled_for_a_sibling"])
@pytest.mark.parametrize("is_script", [False, True], ids=["all files", "a script"])
def test_compile_of_a_base_class_in_another_file_is_known_to_a_class_that_nobody_makes(
    tmp_path: Path, name: str, is_script: bool
) -> None:
    text = (FIXTURES / "rules" / "mp401" / f"{name}.py").read_text(encoding="utf-8")
    bases, rest = text.split("class SimCLR")
    classes, run = rest.split("\nencoder = ")
    head = "import tensorflow as tf\nfrom tensorflow import keras\n"
    texts = {
        "train.py": head + "from algorithms import SimCLR\n" + POLICY + "encoder = " + run,
        "algorithms.py": head + "from models import ContrastiveModel, MomentumModel\nclass SimCLR" + classes,
        "models.py": bases.replace('keras.mixed_precision.set_global_policy("mixed_float16")', ""),
    }
    for name, of_file in texts.items():
        (tmp_path / name).write_text(of_file, encoding="utf-8")
    given = ["train.py"] if is_script else list(texts)
    stage = (SourceOfProgram if is_script else SourceOfFiles)({tmp_path / name: name for name in given})
    said = stage.judge(lambda path: Keras("tf_keras"), frozenset(("MP401",)), list(stage.facts))
    lines = [number for number, line in enumerate(texts["models.py"].splitlines(), 1) if "# expect: MP401" in line]
    assert [item.location.line for item in said if isinstance(item, Finding) and item.location] == lines
