"""Beside a real TensorFlow: what an examination leaves in the temporary directory, what it says was written there, and
that a module without the factory that was asked for does not run."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import check, needs_keras, needs_tensorflow

STEP = """\
import os
import tempfile

import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
with open(os.path.join(tempfile.gettempdir(), "run.txt"), "w") as log:
    log.write("begun")


@tf.function  # rewritten by autograph
def doubled(inputs):
    if tf.reduce_max(inputs) > 0:
        inputs = inputs * 2
    return inputs


class Model(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.head = tf.keras.layers.Dense(1, dtype="float32")

    def call(self, inputs):
        return self.head(doubled(inputs))


model = Model()
model.compile("sgd", "mse")
model.fit(np.ones((32, 4)), np.ones((32, 1)), verbose=0)
"""
TRAINS = """\
import pathlib

pathlib.Path("ran.txt").write_text("")
{more}
"""


@pytest.mark.parametrize(
    "keras",
    [
        pytest.param("3", marks=needs_keras("3")),
        pytest.param("tf_keras", marks=[needs_keras("tf_keras"), pytest.mark.slow]),
    ],
)
def test_nothing_but_the_scripts_own_files_is_left(tmp_path: Path, keras: str) -> None:
    (tmp_path / "train.py").write_text(STEP)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = check("train.py", directory=tmp_path, keras=keras, environment={"TMPDIR": str(temporary)})
    assert done.report["findings"] == []
    assert [path.name for path in temporary.iterdir()] == ["run.txt"]
    assert done.report["targets"][0]["files_written"] == ["temporary/run.txt"]


@needs_tensorflow
@pytest.mark.parametrize(
    ("more", "runs"),
    [
        ("def build(): return None", False),
        ("class Model:\n    def call(self): pass\nif True:\n    def build():\n        def inner(): pass\n", False),
        ("", False),
        ("globals()['no' + 'func'] = dict", True),
        ("from os.path import *", True),
        ("import os as nofunc", True),
        ("for nofunc in (1,): pass", True),
        ("def __getattr__(name): raise AttributeError(name)", True),
    ],
)
def test_a_module_is_run_only_where_it_may_hold_the_factory(tmp_path: Path, more: str, runs: bool) -> None:
    (tmp_path / "model.py").write_text(TRAINS.format(more=more))
    done = check("model.py:nofunc", directory=tmp_path)
    assert (tmp_path / "ran.txt").exists() == runs
    (finding,) = done.report["findings"]
    assert finding["code"] == "MP002"
    assert done.exit_code == 2
    if not runs:
        assert finding["message"] == "model.py has no function `nofunc`."
        named = "Name one of its functions that returns a model: `build`." if more else "It defines none: name the file"
        assert finding["help"].startswith(named)


@needs_tensorflow
def test_a_factory_in_a_module_that_does_not_exist(tmp_path: Path) -> None:
    done = check("no_such_package.model:build", directory=tmp_path)
    (finding,) = done.report["findings"]
    assert (finding["code"], done.exit_code) == ("MP002", 2)
    assert finding["message"].startswith("There is no module `no_such_package` in this directory")
