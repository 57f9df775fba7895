"""Notebooks, run as Jupyter would run them: the places of what is found are cells and their lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checking import PATIENCE, check, needs_keras

# In the first cell %env chooses the Keras, and it is run in the notebook's folder, where the data lie.
CELLS = [
    "# A notebook",
    "%env TF_USE_LEGACY_KERAS=1\n%matplotlib inline\n%run helpers.py\nimport numpy as np\nimport tensorflow as tf",
    "x = np.load('x.npy')\ndisplay(x[:1], display_id=True)\nget_ipython().run_line_magic('matplotlib', 'inline')\n"
    "get_ipython().system_raw('ls')\nassert 'IPKernelApp' not in get_ipython().config",
    "tf.keras.mixed_precision.set_global_policy('mixed_float16')\nL = tf.keras.layers",
    "class Square(L.Layer):\n    def call(self, x):\n        return tf.square(x)",
    "%%time\ninputs = tf.keras.Input((8,))\noutputs = L.Dense(1, dtype='float32')(Square()(inputs))",
    "model = tf.keras.Model(inputs, outputs)\nmodel.compile('adam', 'mse')\nmodel.fit(x, x[:, :1])",
    "model.fit(x, x[:, :1])",
]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """Written as Jupyter writes it."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    np.save(folder / "x.npy", np.full((64, 8), 300, "float32"))
    kinds = ["markdown" if text.startswith("# ") else "code" for text in CELLS]
    cells = [{"cell_type": kind, "source": text.splitlines(True)} for kind, text in zip(kinds, CELLS, strict=True)]
    (folder / "train.ipynb").write_text(json.dumps({"cells": cells}, indent=1), encoding="utf-8")
    return folder / "train.ipynb"


@needs_keras("tf_keras")
def test_a_notebook_is_run(notebook: Path, tmp_path: Path) -> None:
    done = check("notebooks/train.ipynb", "--steps", "10", directory=tmp_path)
    finding = done.finding("MP904")
    assert (finding["path"], finding["cell"], finding["line"]) == ("notebooks/train.ipynb", 5, 3)
    assert "squaring numbers up to 300 gives 90,000" in finding["message"]
    assert "(cell 6, line 3)" in finding["help"]
    probe = done.report["probes"][0]
    assert probe["call"] == {"path": "notebooks/train.ipynb", "line": 3, "cell": 7, "kind": "fit"}
    run_as = "a script of its cells, without `%run helpers.py`, `%matplotlib inline`"
    assert done.report["environment"]["Run as"] == run_as
    not_trained = "the training at notebooks/train.ipynb:cell 8:1: only that at notebooks/train.ipynb:cell 7:3 was"
    assert any(not_trained in skipped["reason"] for skipped in done.report["skipped"])


@pytest.mark.slow
@needs_keras("tf_keras")
def test_a_notebook_is_mended(notebook: Path) -> None:
    before = json.loads(notebook.read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "mpdoctor", "mend", notebook.name, "--write", "--steps", "10"]
    done = subprocess.run(command, cwd=notebook.parent, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "train.ipynb is mended by" in done.stdout and "proved by training" in done.stdout, done
    after = json.loads(notebook.read_text(encoding="utf-8"))
    changed = [number for number, cell in enumerate(after["cells"], 1) if cell != before["cells"][number - 1]]
    assert changed == [6]
    assert 'Square(dtype="float32")' in "".join(after["cells"][5]["source"])
