"""Notebooks, run as Jupyter would run them: the places of what is found are cells and their lines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from checking import check, needs_keras

# In the first cell %env chooses the Keras, and it is run in the notebook's folder, where the data lie.
CELLS = [
    "# A notebook",
    "%env TF_USE_LEGACY_KERAS=1\n%matplotlib inline\n%run helpers.py\nimport numpy as np\nimport tensorflow as tf",
    "x = np.load('x.npy')\ndisplay(x[:1])\nget_ipython().run_line_magic('matplotlib', 'inline')",
    "tf.keras.mixed_precision.set_global_policy('mixed_float16')\nL = tf.keras.layers",
    "class Square(L.Layer):\n    def call(self, x):\n        return tf.square(x)",
    "%%time\ninputs = tf.keras.Input((8,))\noutputs = L.Dense(1, dtype='float32')(Square()(inputs))",
    "model = tf.keras.Model(inputs, outputs)\nmodel.compile('sgd', 'mse')\nmodel.fit(x, x[:, :1])",
    "model.fit(x, x[:, :1])",
]


@needs_keras("tf_keras")
def test_a_notebook_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    np.save(folder / "x.npy", np.full((64, 8), 300, "float32"))
    cells = [{"cell_type": "markdown" if text.startswith("# ") else "code", "source": text} for text in CELLS]
    (folder / "train.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
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
