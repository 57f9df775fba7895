"""Which backend runs the files of a project in Keras 3: on JAX a float16 and a float32 tensor promote, which raises on
TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.keras_backends import backend_of_imports, backends_in_program
from mpdoctor.project.declared_versions.keras_backend import backend_around
from mpdoctor.source_stage import SourceOfFiles

pytestmark = pytest.mark.fast

LAYERS = """import keras
class Ramp(keras.layers.Layer):
    def call(self, inputs):
        return inputs * keras.ops.ones((4,), dtype="float32")
"""
TRAIN = """import keras
from layers import Ramp
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([Ramp(), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
"""
PROGRAM = {"layers.py": LAYERS, "train.py": TRAIN}
SETS = "import os\nos.environ['KERAS_BACKEND'] = '{}'\n"


@pytest.fixture(autouse=True)
def keras_json_of_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "home"))


def codes_in(folder: Path, files: Mapping[str, str]) -> set[str]:
    for name, text in {".git/HEAD": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    python = {path: str(path) for path in sorted(folder.rglob("*.py"))}
    stage = SourceOfFiles(python)
    return {finding.code for finding in stage.judge(lambda path: Keras(), frozenset(("MP202",)), python.values())}


ON_JAX = {
    "the importing file": {**PROGRAM, "train.py": SETS.format("jax") + TRAIN},
    "an imported file": {**PROGRAM, "setting.py": SETS.format("torch"), "train.py": "import setting\n" + TRAIN},
    "a Dockerfile": {**PROGRAM, "Dockerfile": "FROM python\nENV KERAS_BACKEND=jax\nRUN pip install keras tensorflow\n"},
    "a script that starts it": {**PROGRAM, "scripts/run.sh": "export KERAS_BACKEND=jax\npython train.py\n"},
    "requirements without TensorFlow": {**PROGRAM, "requirements.txt": "keras>=3.5\njax[cuda12]==0.4.30\n"},
    "a pyproject without TensorFlow": {**PROGRAM, "pyproject.toml": "[project]\ndependencies = ['keras>=3', 'torch']"},
    "what its file imports": {**PROGRAM, "layers.py": "import jax\n" + LAYERS},
    "keras.json": {**PROGRAM, "home/keras.json": '{"floatx": "float32", "backend": "jax"}'},
}
ON_TENSORFLOW = {
    "nothing": PROGRAM,
    "the importing file": {
        **PROGRAM,
        "train.py": SETS.format("tensorflow") + TRAIN,
        "Dockerfile": "ENV KERAS_BACKEND=jax",
    },
    "two importing files": {
        **PROGRAM,
        "train.py": SETS.format("tensorflow") + TRAIN,
        "on_jax.py": SETS.format("jax") + TRAIN,
    },
    "requirements with both": {**PROGRAM, "requirements.txt": "keras\njax\ntensorflow-cpu\n"},
    "requirements without Keras": {**PROGRAM, "requirements.txt": "torch\n"},
    "a file for each backend": {
        "layers.py": LAYERS + "from on_jax import step as step_on_jax\n",
        "on_jax.py": "import jax\ndef step(): pass\n",
        "train.py": TRAIN,
    },
    "a comment": {**PROGRAM, "train.py": "# os.environ['KERAS_BACKEND'] = 'jax'\n" + TRAIN},
    "keras.json": {**PROGRAM, "home/keras.json": '{"backend": "tensorflow"}'},
}


@pytest.mark.parametrize("said_by", ON_JAX)
def test_another_backend_promotes(said_by: str, tmp_path: Path) -> None:
    assert codes_in(tmp_path, ON_JAX[said_by]) == set()


@pytest.mark.parametrize("said_by", ON_TENSORFLOW)
def test_tensorflow_raises(said_by: str, tmp_path: Path) -> None:
    assert codes_in(tmp_path, ON_TENSORFLOW[said_by]) == {"MP202"}


def test_the_environment_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert codes_in(tmp_path, PROGRAM) == set()


IN_PROGRAM = {
    "os.environ.update({'KERAS_BACKEND': 'jax'})": {"jax"},
    "os.environ.update(KERAS_BACKEND='torch')": {"torch"},
    "keras.config.set_backend('jax')": {"jax"},
    "tensorly.set_backend('pytorch')": set(),
    "# %env KERAS_BACKEND=jax": {"jax"},
    "name = os.environ.get('KERAS_BACKEND', 'jax')": set(),
}
OF_IMPORTS = {
    "import keras\nimport jax.numpy as jnp": "jax",
    "import jax\nimport tensorflow as tf": "",
    "if keras.backend.backend() == 'jax':\n    import jax": "",
}


@pytest.mark.parametrize("text", IN_PROGRAM)
def test_what_a_program_names(text: str) -> None:
    assert backends_in_program(text) == IN_PROGRAM[text]


@pytest.mark.parametrize("text", OF_IMPORTS)
def test_what_a_program_imports(text: str) -> None:
    assert backend_of_imports(text) == OF_IMPORTS[text]


def test_nobody_needs_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container a process may run as a user without an entry."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("KERAS_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    (tmp_path / ".git").mkdir()
    assert backend_around(tmp_path) == ""
