"""Programs that are examined with edited text: the report is the one of the edited program, and no file is touched.

Beside TensorFlow, whose autograph reads source from the disk once more than Python does."""

from __future__ import annotations

import json
import os
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from checking import needs_keras
from live import START

from mpdoctor.diagnosis import diagnose
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.reporters.json import render
from mpdoctor.settings.options import Settings

FIT = "model.compile(wrapped(K.optimizers.Adam(1e-3)), 'mse')\nmodel.fit(x, y, batch_size=16, epochs=2, verbose=0)\n"

# Of each program its files, and by file what stands there and what stands in for it.
PROGRAMS: dict[str, tuple[dict[str, str], dict[str, tuple[str, str]]]] = {
    "a head in float32": (
        {"train.py": "model = K.Sequential([L.Input((8,)), L.Dense(16), L.Dense(1)])\n" + FIT},
        {"train.py": ("L.Dense(1)", "L.Dense(1, dtype='float32')")},
    ),
    "a layer of a package, by autograph": (
        {
            "train.py": "from parts.boost import Boost\n"
            "model = K.Sequential([L.Input((8,)), Boost(), L.Dense(1, dtype='float32')])\n" + FIT,
            "parts/__init__.py": "",
            "parts/factor.py": "FACTOR = 1e6\n",
            "parts/boost.py": """
                import tensorflow as tf
                from .factor import FACTOR

                class Boost(tf.keras.layers.Layer):
                    @tf.function
                    def call(self, inputs):
                        if tf.reduce_max(inputs) > -1.0:
                            inputs = inputs * FACTOR
                        else:
                            inputs = inputs * 2.0
                        return inputs
                """,
        },
        {"parts/boost.py": ("> -1.0", "> 1000.0"), "parts/factor.py": ("FACTOR = 1e6\n", "\n\nFACTOR = 1e5\n")},
    ),
    "a loop that raises": (
        {
            "train.py": "import loop\nmodel = dense_model()\nopt = wrapped(K.optimizers.SGD(0.1))\n"
            "for n in range(0, 96, 16):\n    loop.step(model, opt, x[n:n + 16], y[n:n + 16])\n",
            "loop.py": """
                import tensorflow as tf

                @tf.function
                def step(model, opt, x, y):
                    with tf.GradientTape() as tape:
                        loss = tf.reduce_mean(model(x) - y)
                    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
                """,
        },
        {"loop.py": ("tf.reduce_mean(model(x) - y)", "tf.reduce_mean(\n            model(tf.cast(x, 'float16')) @ y)")},
    ),
    "data from child processes": (
        {
            "train.py": """
                import multiprocessing
                import subprocess
                import sys
                import made
                if __name__ == "__main__":
                    with multiprocessing.get_context("spawn").Pool(1) as pool:
                        x = np.array(pool.map(made.row, range(96)), "float32")
                    y = float(subprocess.check_output([sys.executable, "made.py"])) * y
                    model = dense_model()
                    model.compile(wrapped(K.optimizers.Adam(1e-3)), "mse")
                    model.fit(x, y, batch_size=16, epochs=2, verbose=0)
                """,
            "made.py": """
                def row(number):
                    return [number / 96 * 1.0] * 8

                if __name__ == "__main__":
                    print(1.0)
                """,
        },
        {"made.py": ("1.0", "3.0")},
    ),
}
FIRST = "a layer of a package, by autograph"
ROWS = [
    pytest.param(FIRST, "3", marks=needs_keras("3")),
    pytest.param(FIRST, "tf_keras", marks=[needs_keras("tf_keras"), pytest.mark.slow]),
    *(pytest.param(name, "3", marks=[needs_keras("3"), pytest.mark.slow]) for name in PROGRAMS if name != FIRST),
]


def laid_out(directory: Path, name: str) -> dict[str, bytes]:
    """The files that are edited, by real path."""
    files, edits = PROGRAMS[name]
    edited = {}
    for file, text in files.items():
        (directory / file).parent.mkdir(exist_ok=True)
        text = (START if file == "train.py" else "") + textwrap.dedent(text)
        (directory / file).write_text(text)
        if file in edits:
            old, new = edits[file]
            assert old in text
            edited[os.path.realpath(directory / file)] = b"# edited\n" + text.replace(old, new).encode()
    return edited


def everything_in(directory: Path) -> dict[str, tuple[int, bytes]]:
    paths = [directory, *directory.rglob("*")]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in paths}


def report(edited: dict[str, bytes]) -> dict[str, Any]:
    """The JSON, without what another run takes for its time."""
    settings = Settings((target_from_text("train.py"),), edited=edited, steps=8, seed=3, timeout=200)
    text = render(diagnose(settings, SilentProgress()))
    return json.loads(re.sub(r'"(\w*seconds\w*)": [\d.e-]+', r'"\1": 0', text))


@pytest.mark.parametrize(("name", "keras"), ROWS)
def test_the_report_is_the_one_of_the_edited_program(
    name: str, keras: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1" if keras == "tf_keras" else "0")
    edited = laid_out(directory, name)
    before = everything_in(directory)
    found = report(edited)
    assert everything_in(directory) == before, "nothing is touched"
    for path, text in edited.items():
        Path(path).write_bytes(text)
    assert found == report({})
    (target,) = found["targets"]
    assert target["stages"]["model"]["status"] == "done" and found["probes"], found
