"""`mpdoctor mend` without TensorFlow: source edits, standard input, notebooks, directories, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TWO = """import tensorflow as tf

policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16")
tf.keras.mixed_precision.experimental.set_policy(policy)
"""
MENDED = """import tensorflow as tf

policy = tf.keras.mixed_precision.Policy("mixed_float16")
tf.keras.mixed_precision.set_global_policy(policy)
"""
LATE = """import sys
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
if "--half" in sys.argv:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
else:
    print("float32")
model.compile("adam", "mse")
"""


def mend(*arguments: str, cwd: Path, given: str | bytes = b"") -> subprocess.CompletedProcess[bytes]:
    given = given.encode() if isinstance(given, str) else given
    return subprocess.run(
        [sys.executable, "-m", "mpdoctor", "mend", "--keras", "3", *arguments],
        cwd=cwd,
        input=given,
        capture_output=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_bytes(TWO.replace("\n", "\r\n").encode())
    (tmp_path / "src" / "fine.py").write_text("import tensorflow as tf\n")
    return tmp_path


def test_a_directory_is_mended_in_its_source(folder: Path) -> None:
    done = mend("src", cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    told = done.stdout.decode()
    assert told.startswith("src is mended by 2 edits, proved by a second look at its source.\n")
    assert "It was run" not in told
    assert (folder / "src" / "a.py").read_bytes() == TWO.replace("\n", "\r\n").encode()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "apply"], cwd=folder, input=done.stdout, check=True)
    assert (folder / "src" / "a.py").read_bytes() == MENDED.replace("\n", "\r\n").encode()
    assert mend("src", cwd=folder).stdout == b"src: nothing to mend.\n"


def test_what_is_shown_is_written(folder: Path) -> None:
    done = mend("src", "--write", "--output-format", "json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"mpdoctor: src/a.py was written.\n")
    assert (folder / "src" / "a.py").read_bytes() == MENDED.replace("\n", "\r\n").encode()
    report = json.loads(done.stdout)
    assert (report["mended"], report["rounds"], report["before"]["summary"]["errors"]) == (True, 1, 2)
    assert report["after"]["findings"] == []


def test_the_notebooks_of_a_directory_are_mended_in_their_cells(folder: Path) -> None:
    """One that is named itself is run: see tests/live/test_notebooks.py."""
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": TWO}
    (folder / "notebooks").mkdir()
    notebook = folder / "notebooks" / "a.ipynb"
    notebook.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    told = mend("notebooks", cwd=folder).stderr
    assert told.startswith(b"mpdoctor: notebooks/a.ipynb is a notebook: its patch is for reading")
    assert mend("notebooks", "--write", cwd=folder).returncode == 0
    assert json.loads(notebook.read_text())["cells"][0]["source"] == MENDED


def test_what_git_cannot_apply_is_told(folder: Path) -> None:
    (folder / "old.py").write_bytes(("# coding: latin-1\n# gr\u00f6\u00dfer\n" + TWO).encode("latin-1"))
    done = mend("old.py", cwd=folder)
    told = b"mpdoctor: old.py is not in UTF-8: git does not find its lines; --write makes the changes.\n"
    assert done.stderr.endswith(told)


def test_standard_input_has_a_patch_and_no_file(folder: Path) -> None:
    done = mend("-", cwd=folder, given=TWO)
    assert done.returncode == 0
    assert b"+++ b/stdin.py" in done.stdout
    refused = mend("-", "--write", cwd=folder, given=TWO)
    assert (refused.returncode, refused.stderr) == (
        2,
        b"mpdoctor: --write has no file to write: the source came from standard input.\n",
    )


def test_what_remains_is_told(folder: Path) -> None:
    (folder / "src" / "b.py").write_text(LATE)
    done = mend("src", cwd=folder)
    told = done.stdout.decode()
    assert done.returncode == 1
    assert "What remains:\n  src/b.py:6" in told
    assert "--- a/src/a.py" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nothing.py",), "no such file"),
        (("model.keras",), "model.keras is a saved model, and nothing is overwritten: name the new file with --output"),
        (("model.keras", "--output", "model.keras"), "model.keras exists, and nothing is overwritten"),
        (("model.keras", "--output", "new.h5"), "its name must end in .keras"),
        (("model.keras", "--output", "nowhere/new.keras"), "there is no directory nowhere"),
        (("model.keras", "--output", "new.keras", "--write"), "--write writes edits into source"),
        (("src/fine.py", "--output", "new.keras"), "--output is for a saved model (.keras, .h5), and src/fine.py"),
        (("src", "--", "--epochs", "2"), "arguments after -- are for a script, and the target is none."),
        (("src", "--policy", "mixed_float16"), "--policy switches a script or a function that makes a model"),
        (("src", "--policy", "float16"), "Invalid value for '--policy'"),
        (("src", "fine.py"), "unexpected extra argument"),
        ((), "Missing argument"),
    ],
)
def test_what_is_refused(folder: Path, arguments: tuple[str, ...], told: str) -> None:
    (folder / "model.keras").write_bytes(b"")
    done = mend(*arguments, cwd=folder)
    assert done.returncode == 2
    assert told in done.stderr.decode()


def test_help_says_what_is_done_each_round(folder: Path) -> None:
    told = " ".join(mend("--help", cwd=folder).stdout.decode().split())
    assert "it does everything before its training call once per round" in told
    assert "--policy POLICY" in told


IMPORT = "import tensorflow as tf\ntf.keras.mixed_precision.set_global_policy('mixed_float16')\n"


@pytest.mark.parametrize(
    "cell",
    [
        *(None, 1, "x", [1], {}, {"cell_type": "code"}, {"cell_type": 1, "source": IMPORT}),
        *(
            {"cell_type": "code", "source": source}
            for source in (None, 5, {"a": 1}, [1, None], [[IMPORT]], [IMPORT, 3])
        ),
        *({"cell_type": "code", "source": IMPORT + wrong} for wrong in ("'\0'", "'\ud800'", "x = " + "(" * 5000)),
    ],
)
def test_no_cell_of_a_notebook_breaks_it(folder: Path, cell: object) -> None:
    cells = [{"cell_type": "code", "source": IMPORT}, cell]
    (folder / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": None, "nbformat": "4"}))
    done = mend("a.ipynb", "--python", "/bin/false", cwd=folder)
    assert done.returncode in (1, 2)
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"is not mended: 1 error remains" in done.stdout
