"""Code that is plainly for an older Keras than the installed one, where nothing says which: it is judged by the one
that it was written for, and told once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpdoctor.diagnosis import diagnose
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis
from mpdoctor.judging import keras_version
from mpdoctor.progress import SilentProgress
from mpdoctor.project import keras_from_pins
from mpdoctor.project.python_environments import release_beside
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings

EXPERIMENTAL = "import tensorflow as tf\ntf.keras.mixed_precision.experimental.set_policy('mixed_float16')\n"
REWRITE = "import tensorflow as tf\nopt = tf.train.experimental.enable_mixed_precision_graph_rewrite(make())\n"
CONTRIB = "import tensorflow as tf\nopt = tf.contrib.mixed_precision.LossScaleOptimizer(make(), manager())\n"
LOOP = """import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())


def step(model, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
        scaled = opt.get_scaled_loss(loss)
    gradients = opt.get_unscaled_gradients(tape.gradient(scaled, model.trainable_variables))
    opt.apply_gradients(zip(gradients, model.trainable_variables))
"""
MIXED = "import tensorflow as tf\ntf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
LEGACY = "import tensorflow as tf\nopt = tf.keras.optimizers.legacy.Adam()\n"
FIXED = (
    "import tensorflow as tf\n"
    "opt = tf.keras.mixed_precision.LossScaleOptimizer(make(), dynamic=False, initial_scale=1024)\n"
)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed beside mpdoctor, whatever is."""
    versions = {"keras": "3.15.1", "tensorflow": "2.21.0"}
    for room in (keras_version, keras_from_pins):
        monkeypatch.setattr(room, "release_beside", lambda name: versions.get(name) or release_beside(name))


def said_of(directory: Path, files: dict[str, str], target: str = ".", **more: object) -> Diagnosis:
    for name, text in {".git/HEAD": "", **files}.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    settings = Settings((target_from_text(target),), static=True, cache=False, **more)  # type: ignore[arg-type]
    return diagnose(settings, SilentProgress())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "release", "pin", "lines"),
    [
        (EXPERIMENTAL, "2.8", "tensorflow<2.9", 1),
        (REWRITE, "2.7", "tensorflow<2.8", 1),
        (CONTRIB, "1.15", "tensorflow<2", 1),
        (LOOP, "2.15", "tensorflow<2.16", 2),
        (LEGACY, "2.15", "tensorflow<2.16", 1),
        (LOOP + EXPERIMENTAL, "2.8", "tensorflow<2.9", 3),
    ],
)
@pytest.mark.parametrize("target", [".", "train.py"])
def test_it_is_told_once_and_judged_by_the_newest_that_has_all(
    here: Path, text: str, release: str, pin: str, lines: int, target: str
) -> None:
    diagnosis = said_of(here, {"train.py": text}, target)
    assert diagnosis.targets[0].keras.version == release
    (finding,) = diagnosis.findings
    assert finding.severity is not None
    assert (finding.severity.value, diagnosis.exit_code) == ("error", 1)
    assert finding.evidence == {"lines": lines, "written_for": pin}
    assert len(finding.also_seen) == lines - 1
    assert finding.fix is None, "one line moved to Keras 3 would be one of many"
    assert f"`{pin}`" in finding.help
    assert ("TF_USE_LEGACY_KERAS=1" in finding.help) is (release == "2.15")  # what went before 2.15 tf_keras lacks, too
    assert "Keras 3.15.1 is installed beside mpdoctor" in finding.message


def test_each_line_keeps_its_place_and_what_to_write(here: Path) -> None:
    (finding,) = said_of(here, {"train.py": LOOP}).findings
    assert (finding.code, finding.location and finding.location.line) == ("MP407", 10)
    assert [(seen.path, seen.line) for seen in finding.also_seen] == [("train.py", 11)]
    assert "Delete this call: `apply` and `apply_gradients` unscale by themselves." in finding.also_seen[0].text
    assert (
        "2 lines use names that Keras 3 has removed, and do not work there: `opt.get_scaled_loss` (train.py, line 10)"
        in (finding.message)
    )


# files, the codes of what is told, the Keras of each file
OTHERS = {
    "an argument alone": ({"a.py": FIXED}, ["MP310"], {"a.py": "3.15.1"}),
    "keras as a package": ({"a.py": "import keras\n" + LOOP}, ["MP407"] * 2, {"a.py": "3.15.1"}),
    "Keras 3 beside it": ({"a.py": LOOP + "    opt.scale_loss(loss)\n"}, ["MP407"] * 2, {"a.py": "3.15.1"}),
    "apex beside it": (
        {"a.py": LOOP, "b.py": "import a\nwith amp.scale_loss(loss, opt) as scaled:\n    scaled.backward()\n"},
        ["MP407"],
        {"a.py": "2.15", "b.py": "2.15"},
    ),
    "guarded": (
        {"a.py": LOOP.replace("_loss(loss)\n", "_loss(loss) if hasattr(opt, 'get_scaled_loss') else loss\n")},
        ["MP407"],
        {"a.py": "2.15"},
    ),
    "an argument that Keras 3 refuses": (
        {"a.py": FIXED, "b.py": MIXED + "opt = tf.keras.optimizers.SGD(lr=0.1)\n"},
        ["MP310"],
        {"a.py": "2.15", "b.py": "2.15"},
    ),
    "a method that Keras 3 has not": ({"a.py": FIXED + "model.fit_generator(data)\n"}, ["MP310"], {"a.py": "2.15"}),
    "arguments of generators": (
        {"a.py": FIXED + "model.fit(data, use_multiprocessing=True)\n"},
        ["MP310"],
        {"a.py": "2.15"},
    ),
    "a name before the shape": (
        {"a.py": FIXED + "layer.add_weight('kernel', shape=(3,))\n"},
        ["MP310"],
        {"a.py": "2.15"},
    ),
    "an argument of compile": (
        {"a.py": FIXED + "model.compile('sgd', sample_weight_mode='temporal')\n"},
        ["MP310"],
        {"a.py": "2.15"},
    ),
    "an argument of a callback": (
        {"a.py": FIXED + "tf.keras.callbacks.ModelCheckpoint('x.h5', period=5)\n"},
        ["MP310"],
        {"a.py": "2.15"},
    ),
    "a method of metrics": (
        {"a.py": FIXED + "mean = tf.keras.metrics.Mean()\nmean.reset_states()\n"},
        ["MP310"],
        {"a.py": "2.15"},
    ),
    "a method of somebody's own": ({"a.py": FIXED + "game.reset_states()\n"}, ["MP310"], {"a.py": "3.15.1"}),
    "a format": ({"a.py": FIXED + "model.save('x', save_format='tf')\n"}, ["MP310"], {"a.py": "2.15"}),
    "a format that is in both": (
        {"a.py": FIXED + "model.save('x.h5', save_format='h5')\n"},
        ["MP310"],
        {"a.py": "3.15.1"},
    ),
    "a package for Keras 2 alone": (
        {"a.py": FIXED, "b.py": "import tensorflow_addons as tfa\n"},
        ["MP310"],
        {"a.py": "2.15", "b.py": "2.15"},
    ),
    "a package, if it is there": (
        {"a.py": "try:\n    import tensorflow_addons as tfa\nexcept ImportError:\n    tfa = None\n" + FIXED},
        ["MP310"],
        {"a.py": "3.15.1"},
    ),
    "a module of Keras 2 on each way": (
        {
            "a.py": "if new:\n    from keras.src.engine import training\nelif old:\n    import keras.engine\n"
            "else:\n    from keras.layers.core import Dense\n" + FIXED
        },
        ["MP310"],
        {"a.py": "2.15"},
    ),
    "a module of Keras 2 on each way of a file that has nothing else": (
        {
            "a.py": FIXED,
            "b.py": "try:\n    from keras.src.engine import training\nexcept ImportError:\n    import keras.engine\n",
        },
        ["MP310"],
        {"a.py": "2.15"},
    ),
    "a module of Keras 2 in TensorFlow": (
        {"a.py": "from tensorflow.keras.layers.experimental import preprocessing\n" + FIXED},
        ["MP310"],
        {"a.py": "2.15"},
    ),
    "a module that TensorFlow has kept": (
        {"a.py": "from tensorflow.keras.preprocessing.text import Tokenizer\n" + FIXED},
        ["MP310"],
        {"a.py": "3.15.1"},
    ),
    "an asserted TensorFlow": (
        {"a.py": LOOP + "assert tf.__version__.startswith('2.10'), tf.__version__\n"},
        [],
        {"a.py": "2.10"},
    ),
    "an asserted TensorFlow of Keras 3": (
        {"a.py": LOOP + 'assert tf.__version__ == "2.17.0"\n'},
        ["MP407"] * 2,
        {"a.py": "3.15.1"},
    ),
    "an asserted Keras": ({"a.py": LOOP + "assert keras.__version__.startswith('2.')\n"}, [], {"a.py": ""}),
    "a version that is asked": (
        {"a.py": LOOP + "if tf.__version__.startswith('2.10'):\n    pass\n"},
        ["MP407"],
        {"a.py": "2.15"},
    ),
    "an argument of torch": (
        {"a.py": "import torch\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\n" + FIXED},
        ["MP310"],
        {"a.py": "3.15.1"},
    ),
    "a method where it is there": (
        {"a.py": FIXED + "if hasattr(model, 'fit_generator'):\n    model.fit_generator(data)\n"},
        ["MP310"],
        {"a.py": "3.15.1"},
    ),
    "what Keras 3 refuses beside Keras 3": (
        {"a.py": FIXED + "model.fit_generator(data)\n", "b.py": "import keras\nkeras.ops.ones(3)\n"},
        ["MP310"],
        {"a.py": "3.15.1", "b.py": "3.15.1"},
    ),
    "nothing of it": ({"a.py": "import tensorflow as tf\n"}, [], {"a.py": "3.15.1"}),
    "a pin": ({"a.py": LOOP, "requirements.txt": "tensorflow==2.17.0"}, ["MP407"] * 2, {"a.py": "3.15.1"}),
    "an older pin": ({"a.py": LOOP, "requirements.txt": "tensorflow==2.9.0"}, [], {"a.py": "2.9.0"}),
    "what asks for tf_keras where it starts": (
        {"a.py": LOOP + LEGACY + "import b\n", "b.py": "# Set TF_USE_LEGACY_KERAS=1 from TensorFlow 2.16 on.\n"},
        [],
        {"a.py": "2.15"},
    ),
    "a project that needs tf_keras": (
        {"a/a.py": LOOP + LEGACY, "requirements.txt": "tensorflow>=2.15\ntf-keras>=2.15,<3\n"},
        [],
        {"a/a.py": "2.15"},
    ),
    "keras as a package, and what went before": (
        {"a.py": "from keras import backend\n" + LOOP + EXPERIMENTAL},
        ["MP102"],
        {"a.py": "2.8"},
    ),
    "what tf_keras lacks, too": (
        {"a.py": EXPERIMENTAL + "import b\n", "b.py": "told = 'set TF_USE_LEGACY_KERAS=1'\n"},
        ["MP102"],
        {"a.py": "2.8"},
    ),
    "what it imports": (
        {"a.py": EXPERIMENTAL + "import b\n", "b.py": FIXED, "c.py": FIXED},
        ["MP102", "MP310"],
        {"a.py": "2.8", "b.py": "2.8", "c.py": "3.15.1"},
    ),
    "two programs": (
        {"a.py": EXPERIMENTAL, "b.py": LOOP, "c.py": "import keras\nkeras.ops.ones(3)\n"},
        ["MP102"],
        {"a.py": "2.8", "b.py": "2.15", "c.py": "3.15.1"},
    ),
    "a program of both": ({"a.py": LOOP + "import b\n", "b.py": "import keras\n"}, ["MP407"] * 2, {"a.py": "3.15.1"}),
    "keras as a package, and a module of Keras 2 in it": (
        {"a.py": "from keras.layers.preprocessing import integer_lookup\nfrom keras.testing_infra import x\n" + LEGACY},
        ["MP102"],
        {"a.py": "2.15"},
    ),
    "a program that imports a module of Keras 2": (
        {"a.py": "import keras\nimport b\n" + LOOP, "b.py": "from keras.utils import np_utils, Sequence\n"},
        ["MP407"],
        {"a.py": "2.15"},
    ),
    "a module that went to keras.src": (
        {"a.py": "from keras.mixed_precision import policy\n" + LOOP, "b.py": FIXED},
        ["MP407"],
        {"a.py": "2.12", "b.py": "2.12"},
    ),
    "a module of Keras 2, where it is there": (
        {"a.py": "try:\n    from keras.engine import base_layer\nexcept ImportError:\n    import keras\n" + LOOP},
        ["MP407"] * 2,
        {"a.py": "3.15.1"},
    ),
    "a comment": (
        {"a.py": LOOP.replace("(loss)\n    grad", "(loss)  # mpdoctor: ignore[MP407]\n    grad")},
        ["MP407"],
        {"a.py": "2.15"},
    ),
    "comments": ({"a.py": "# mpdoctor: ignore-file[MP102]\n" + EXPERIMENTAL}, [], {"a.py": "2.8"}),
}


@pytest.mark.parametrize(("files", "codes", "kerases"), OTHERS.values(), ids=OTHERS)
def test_which_keras_and_what_is_told(
    here: Path, files: dict[str, str], codes: list[str], kerases: dict[str, str]
) -> None:
    diagnosis = said_of(here, files)
    assert [finding.code for finding in diagnosis.findings] == codes
    others = {path: keras for keras, paths in diagnosis.targets[0].other_keras for path in paths}
    assert {path: others.get(path, diagnosis.targets[0].keras).version for path in kerases} == kerases


def test_what_is_wrong_in_the_older_keras_as_well_is_told_as_that_alone(here: Path) -> None:
    fixed = "import tensorflow as tf\nadam = tf.keras.optimizers.Adam()\n"
    argument = "tf.keras.mixed_precision.LossScaleOptimizer(adam, loss_scale='dynamic')\n"
    diagnosis = said_of(here, {"a.py": EXPERIMENTAL + fixed + argument})
    told = {finding.code: [also.code for also in finding.also_seen] for finding in diagnosis.findings}
    assert "MP310" in told and "MP310" not in told["MP102"]


def test_what_was_asked_for_decides(here: Path) -> None:
    findings = said_of(here, {"a.py": LOOP}, keras=Keras(version="3.15")).findings
    assert [finding.code for finding in findings] == ["MP407"] * 2
    assert said_of(here, {"a.py": LOOP}, keras=Keras("tf_keras")).findings == ()


@pytest.mark.parametrize(
    ("select", "codes"), [(("MP407",), ["MP407"]), (("MP102",), ["MP102"]), (("MP310",), ["MP310"]), (("MP2",), [])]
)
def test_the_keras_is_the_same_whatever_rules_are_chosen(here: Path, select: tuple[str, ...], codes: list[str]) -> None:
    diagnosis = said_of(here, {"a.py": LOOP + EXPERIMENTAL + FIXED}, select=select)
    assert [finding.code for finding in diagnosis.findings] == codes
    assert diagnosis.targets[0].keras.version == "2.8"


def test_lines_of_notebooks_are_those_of_their_cells(here: Path) -> None:
    cells = [{"cell_type": "code", "source": source} for source in ("import tensorflow as tf\n", EXPERIMENTAL)]
    (finding,) = said_of(here, {"a.py": EXPERIMENTAL, "b.ipynb": json.dumps({"cells": cells})}).findings
    assert "(a.py, line 2)" in finding.message
    assert "(b.ipynb, cell 2, line 2)" in finding.message
    assert [(seen.path, seen.line, seen.cell) for seen in finding.also_seen] == [("b.ipynb", 2, 2)]


HUGGING_FACE = """from sagemaker.huggingface import HuggingFace
HuggingFace(
    entry_point="train.py", source_dir="./scripts", role=get_role(a, b),
    transformers_version="4.12.3", tensorflow_version="2.5.1", py_version="py36",
)
"""
AZURE = "from azureml.train.dnn import TensorFlow\nTensorFlow(source_directory='code', framework_version='2.0')\n"
TRAINED = {
    "SageMaker": ({"a.py": HUGGING_FACE}, {"scripts/train.py": "2.5.1", "a.py": "3.15.1"}),
    "Azure": ({"a/b.py": AZURE, "a/code/c/d.py": LOOP}, {"a/code/c/d.py": "2.0"}),
    "its own folder": (
        {"a.py": "import sagemaker.tensorflow as t\nt.TensorFlow('a.py', framework_version='2.9.1')\n"},
        {"a.py": "2.9.1", "scripts/train.py": "2.9.1"},
    ),
    "another cloud's": ({"a.py": HUGGING_FACE.replace("sagemaker", "somewhere")}, {"scripts/train.py": "3.15.1"}),
    "of PyTorch": ({"a.py": HUGGING_FACE.replace("tensorflow_v", "pytorch_v")}, {"scripts/train.py": "3.15.1"}),
    "not known": ({"a.py": HUGGING_FACE.replace('"2.5.1"', "RELEASE")}, {"scripts/train.py": "3.15.1"}),
    "older and newer": (
        {"a.py": HUGGING_FACE, "b.py": HUGGING_FACE.replace("2.5.1", "2.17.0")},
        {"scripts/train.py": "3.15.1"},
    ),
    "a pin says more": ({"a.py": HUGGING_FACE, "requirements.txt": "tensorflow==2.9.0"}, {"scripts/train.py": "2.9.0"}),
}


@pytest.mark.parametrize(("files", "kerases"), TRAINED.values(), ids=TRAINED)
def test_what_a_cloud_trains_with(here: Path, files: dict[str, str], kerases: dict[str, str]) -> None:
    diagnosis = said_of(here, {"scripts/train.py": "import tensorflow as tf\n", **files})
    others = {path: keras for keras, paths in diagnosis.targets[0].other_keras for path in paths}
    assert {path: others.get(path, diagnosis.targets[0].keras).version for path in kerases} == kerases


USING = "import tensorflow as tf\nfrom library import wrap\n" + LOOP
LIBRARY = {"library/__init__.py": "import tensorflow as tf\n", "scripts/train.py": USING}
PINNED = {**LIBRARY, "library/requirements.txt": "tensorflow==2.10.1\n"}

# files, the Keras of the script
IMPORTED = {
    "in the folder of what it imports": (PINNED, "2.10.1"),
    "for another": ({**PINNED, "scripts/train.py": LOOP.replace("wrap", "other")}, "2.15"),
    "for itself": ({**PINNED, "scripts/requirements.txt": "tensorflow==2.9.0\n"}, "2.9.0"),
    "for the project": ({**PINNED, "requirements.txt": "tensorflow==2.17.0\n"}, "3.15.1"),
    "nowhere": (LIBRARY, "2.15"),
}


@pytest.mark.parametrize(("files", "version"), IMPORTED.values(), ids=IMPORTED)
@pytest.mark.parametrize("target", [".", "scripts/train.py"])
def test_a_package_of_the_project_asks_for_a_release(
    here: Path, files: dict[str, str], version: str, target: str
) -> None:
    diagnosis = said_of(here, {**files, "pyproject.toml": ""}, target)
    others = {path: keras for keras, paths in diagnosis.targets[0].other_keras for path in paths}
    assert others.get("scripts/train.py", diagnosis.targets[0].keras).version == version


# files, the last sentence of the message
REASONS = {
    "nothing": ({"a.py": LOOP}, "The project does not say which TensorFlow it needs, and"),
    "a package without a release": (
        {"a.py": LOOP, "requirements.txt": "tensorflow\nnumpy>=1.2\n"},
        "The project does not say which TensorFlow it needs, and",
    ),
    "a release in words": (
        {"src/a.py": LOOP, "README.md": "# A loop\n\nIt has been tested against `TensorFlow 2.2-2.15`.\n"},
        "README.md speaks of `TensorFlow 2.2-2.15`, which no installer reads, and",
    ),
    "words about another release": (
        {"a.py": LOOP, "README.md": "# TensorFlow 2.x\n\nTensorFlow 1.x is not supported.\n"},
        "The project does not say which TensorFlow it needs, and",
    ),
    "a range": (
        {"src/a.py": LOOP, "requirements.txt": "tensorflow>=2.10.0\n"},
        "requirements.txt asks for tensorflow>=2.10.0, which allows Keras 3 as well, and",
    ),
    "two ranges": (
        {"a.py": LOOP, "requirements.txt": "tensorflow>=2.4\n", "setup.py": "x(['keras>=2.4', 'tensorflow-text>=2'])"},
        "setup.py asks for keras>=2.4 and requirements.txt asks for tensorflow>=2.4, which allow Keras 3 as well, and",
    ),
    "other folders say": (
        {"a/a.py": LOOP, "b/b.py": LEGACY, "c/c.py": LOOP, "c/requirements.txt": "tensorflow<2.16"},
        "Nothing says which TensorFlow these 2 files need, and",
    ),
    "another folder says": (
        {"a/a.py": LOOP, "c/c.py": LOOP, "c/requirements.txt": "tensorflow<2.16"},
        "Nothing says which TensorFlow this file needs, and",
    ),
}


@pytest.mark.parametrize(("files", "reason"), REASONS.values(), ids=REASONS)
def test_why_it_was_judged_by_what_is_installed(here: Path, files: dict[str, str], reason: str) -> None:
    (finding,) = said_of(here, files).findings
    assert finding.message.endswith(f"). {reason} Keras 3.15.1 is installed beside mpdoctor.")


def test_one_line_is_told_as_one(here: Path) -> None:
    (finding,) = said_of(here, {"a.py": LEGACY}).findings
    removed = "`tensorflow.keras.optimizers.legacy.Adam` (a.py, line 2)"
    assert finding.message.startswith(f"This line does not work in Keras 3, which has removed {removed}. ")


OWN_LOOP = """from tf_keras.src import loss_scale_optimizer


def step(model, loss):
    if isinstance(model.optimizer, loss_scale_optimizer.LossScaleOptimizer):
        return model.optimizer.get_scaled_loss(loss)
    return loss
"""


def test_a_file_of_tf_keras_itself_is_judged_by_it(here: Path) -> None:
    optimizer = "class LossScaleOptimizer:\n    def get_scaled_loss(self, loss):\n        return loss * self.scale\n"
    package = {"tf_keras/__init__.py": "", "tf_keras/src/__init__.py": "", "tf_keras/src/engine/__init__.py": ""}
    files = {**package, "tf_keras/src/loss_scale_optimizer.py": optimizer, "tf_keras/src/engine/loop.py": OWN_LOOP}
    said = said_of(here, files, select=("MP407",))
    assert [finding.code for finding in said.findings] == []


UNSCALED = MIXED + (
    "model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])\n"
    "opt = tf.keras.optimizers.SGD(0.1)\n"
    "def step(x, y):\n"
    "    with tf.GradientTape() as tape:\n"
    "        loss = tf.reduce_mean((model(x) - y) ** 2)\n"
    "    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))\n"
)


@pytest.mark.parametrize(
    ("more", "is_offered"),
    [
        ("tf.keras.optimizers.SGD(lr=0.1)\n", False),
        ("tf.keras.mixed_precision.LossScaleOptimizer(opt).get_scaled_loss(0.0)\n", True),
    ],
)
def test_no_edit_writes_what_keras_3_lacks_where_a_call_alone_tells_of_keras_2(
    here: Path, more: str, is_offered: bool
) -> None:
    diagnosis = said_of(here, {"train.py": UNSCALED + more})
    (finding,) = [finding for finding in diagnosis.findings if finding.code == "MP106"]
    assert diagnosis.targets[0].keras.version == "2.15"
    assert (finding.fix is not None) is is_offered
