"""The source stage as a gate: whatever lies in a directory, each file is told in words or read, and nothing crashes;
what a project configures, which files are looked at, which Keras it asks for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from checking import Check, check
from hypothesis import given, settings
from hypothesis import strategies as st

from mpdoctor.diagnosis import diagnose
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Severity
from mpdoctor.progress import SilentProgress
from mpdoctor.project.files import PathPatterns, files_below
from mpdoctor.project.keras_of_project import keras_from_project
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings
from mpdoctor.settings.pyproject import ConfigurationError, configuration_above

WRONG = "import tensorflow as tf\nopt = tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())\n"
TF_KERAS = "import tf_keras\ntf_keras.mixed_precision.set_global_policy('mixed_float16')\n"
MANY = "".join(f"  'key{number}': ['{'x' * 130}', {number}],\n" for number in range(13_000))  # 2 MB


def write(directory: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return directory


def code(*cells: object, **more: object) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells], **more})


# name: content, the lines with MP101, the line of MP001 (0 where it has none)
FILES: dict[str, tuple[str | bytes, list[int], int | None]] = {
    "bom.py": (b"\xef\xbb\xbf" + WRONG.encode(), [2], None),
    "declared_latin.py": (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n" + WRONG.encode(), [4], None),
    "cr.py": (WRONG.replace("\n", "\r"), [2], None),
    "crlf.py": (WRONG.replace("\n", "\r\n"), [2], None),
    "empty.py": ("", [], None),
    "two_megabytes.py": (WRONG + "D = {\n" + MANY + "}\n", [2], None),
    "one_long_line.py": ("x = [" + ",".join(map(str, range(20_000))) + "]\n" + WRONG, [3], None),
    "deep_attributes.py": ("x = a" + ".b" * 500 + "\n", [], None),
    "many_branches.py": ("if x == 0:\n  y = 0\n" + "elif x == 1:\n  y = 1\n" * 2000, [], None),
    "utf16.py": (WRONG.encode("utf-16"), [], 1),
    "latin.py": ("x = 1\ny = 'é'\n".encode("latin-1"), [], 2),
    "no_codec.py": ("# coding: klingon\n" + WRONG, [], 1),
    "no_text_codec.py": ("# coding: hex\n" + WRONG, [], 1),
    "print.py": (WRONG + "print 'x'\n", [], 3),
    "except.py": ("try:\n    pass\nexcept E, e:\n    pass\n", [], 3),
    "exec.py": ("x = 1\nexec 'x'\n", [], 2),
    "null.py": (b"x = 1\ny = 2\0\n", [], 2),
    "binary.py": (bytes(range(256)) * 20, [], 2),
    "conflict.py": ("x = 1\n<<<<<<< HEAD\nx = 2\n", [], 2),
    "deep.py": ("x = " + "(" * 1000 + "1" + ")" * 1000, [], 1),
    "no_metadata.ipynb": (code("x = 1", WRONG), [2], None),
    "magics.ipynb": (code("%pip install x\n!ls\n" + WRONG, "%%bash\nfor x in y"), [4], None),
    "timed.ipynb": (code("%time for x in y: f(x)\n%time x = 1\n" + WRONG), [4], None),
    "quoted.ipynb": (code('ls "a b"\nls {DATA}/in # here\nrm *.png\n' + WRONG), [5], None),
    "indented.ipynb": (code("\n" + "".join(f"  {line}\n" for line in ["# x", "!ls", *WRONG.splitlines()])), [5], None),
    "indented_at_random.ipynb": (code("  x = 1\n y = 2\n"), [], 2),
    "prompts.ipynb": (
        code(">>> !ls\n>>> for x in y:\n...     f(x)\n...\n" + "".join(f">>> {x}\n" for x in WRONG.splitlines())),
        [6],
        None,
    ),
    "numbered_prompts.ipynb": (
        code("In [1]: for x in y:\n   ...:     f(x)\nIn [2]: " + "\nIn [3]: ".join(WRONG.splitlines())),
        [4],
        None,
    ),
    "prompt_in_the_second_line.ipynb": (code("# x\n>>> " + "\n".join(WRONG.splitlines())), [3], None),
    "prompts_with_an_answer.ipynb": (code(">>> 1 + 1\nthe answer\n"), [], 2),
    "prompts_in_the_third_line.ipynb": (code("x = 1\ny = 2\n>>> z = 3\n"), [], 3),
    "ellipsis.ipynb": (code("x = 1\n...\n" + WRONG), [4], None),
    "citation.ipynb": (code("@manual{Intro1,\n title={A title},\n year={2024},\n}", WRONG), [2], None),
    "decorated.ipynb": (code("@cache\ndef f({): pass"), [], 2),
    "format_3.ipynb": (json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": [WRONG]}]}]}), [2], None),
    "other_language.ipynb": (code("x <- 1", metadata={"kernelspec": {"language": "R"}}), [], None),
    "odd_cells.ipynb": (json.dumps({"cells": [1, None, {"cell_type": "code"}], "metadata": []}), [], None),
    "no_cells.ipynb": ("{}", [], 1),
    "a_list.ipynb": ("[]", [], 1),
    "no_json.ipynb": ("{\n'a': 1}", [], 2),
    "nothing.ipynb": ("", [], 1),
    "deep.ipynb": ("[" * 100_000, [], 1),
    "half_broken.ipynb": (code(WRONG, "x = 1\nprint 'x'"), [2], 2),
    "surrogate.ipynb": (code("x = '\ud800'", WRONG), [2], 1),
}


def test_every_file_of_a_directory_is_read_or_told(tmp_path: Path) -> None:
    write(tmp_path, {f"src/{name}": content for name, (content, _, _) in FILES.items()})
    source = tmp_path / "src"
    (source / "loop.py").symlink_to("loop.py")
    (source / "again").symlink_to(source)
    (source / "twice.py").symlink_to("bom.py")
    (source / "gone.py").symlink_to("nowhere.py")
    if hasattr(os, "mkfifo"):
        os.mkfifo(source / "pipe.py")
    done = check("src", directory=tmp_path)
    assert done.exit_code == 1, str(done)
    told = {(f["path"].removeprefix("src/"), f["code"], f["line"]) for f in done.report["findings"]}
    expected = {(name, "MP101", line) for name, (_, lines, _) in FILES.items() for line in lines}
    expected |= {(name, "MP001", line) for name, (_, _, line) in FILES.items() if line is not None}
    assert told == expected
    assert done.report["crashed"] == []
    assert [skip["reason"] for skip in done.report["skipped"]] == ["src/other_language.ipynb is a notebook in R."]


SET = "keras.config.set_dtype_policy"
# the lines of the program behind `import keras`: which of them, from 2 on, sets a policy that only a run knows
POLICIES: dict[str, tuple[str, str]] = {
    "a file": (f"{SET}(json.load(open('c.json'))['policy'])\n", "line 2, sets one"),
    "the environment": (f"{SET}(os.environ['POLICY'])\n", "line 2, sets one"),
    "an option": (
        f"p = argparse.ArgumentParser()\np.add_argument('--policy', default='float32')\n{SET}(p.parse_args().policy)\n",
        "line 4, sets one",
    ),
    "two": (f"{SET}(open('a').read())\nx = 1\n{SET}(open('b').read())\n", "line 2 and 1 other line set ones"),
    "main": (f"def main(name):\n    {SET}(name)\nmain(input())\n", "line 3, sets one"),
    "a constant": (f"{SET}('mixed_float16')\n", ""),
    "one of two": (f"{SET}('mixed_float16' if input() else 'float32')\n", ""),
    "what was set before": (f"old = keras.config.dtype_policy()\n{SET}(old)\n", ""),
    "a function that others call": (f"def prepare(name):\n    {SET}(name)\n", ""),
    "a function that is given both": (f"def f(name):\n    {SET}(name)\nf('mixed_float16')\nf(input())\n", ""),
    "floatx": ("keras.config.set_floatx(input())\n", ""),
}


@pytest.mark.parametrize(("line", "chosen"), [("%env TF_USE_LEGACY_KERAS=1", True), ("%env OTHER=1", False)])
def test_a_magic_that_sets_a_variable_chooses_the_keras(tmp_path: Path, line: str, chosen: bool) -> None:
    write(tmp_path, {"n.ipynb": code(f"{line}\nimport tensorflow as tf")})
    keras = check("--static", "n.ipynb", directory=tmp_path).report["targets"][0]["keras"]
    assert ("n.ipynb says so" in str(keras)) is chosen


@pytest.mark.parametrize(("lines", "place"), POLICIES.values(), ids=POLICIES)
def test_a_policy_that_only_a_run_knows_is_told(tmp_path: Path, lines: str, place: str) -> None:
    write(
        tmp_path,
        {
            "train.py": f"import argparse, json, os, keras\n{lines}",
            "all/train.py": f"import argparse, json, os, keras\n{lines}",
        },
    )
    told = [f"train.py, {place} that only a run knows; --assume-mixed takes it for mixed_float16."] if place else []
    for target, prefix in (("train.py", ""), ("all", "all/"), ("all", "all/")):  # the last from the cache
        done = check("--static", target, directory=tmp_path)
        assert done.report["skipped"] == [{"code": "policy", "reason": prefix + reason} for reason in told], str(done)
        assert done.exit_code == 0
    assert check("--static", "--assume-mixed", "train.py", directory=tmp_path).report["skipped"] == []


def test_a_default_that_is_no_policy_is_told_once(tmp_path: Path) -> None:
    option = "p = argparse.ArgumentParser()\np.add_argument('--bits', default='fp16')\n"
    write(tmp_path, {"train.py": f"import argparse, keras\n{option}{SET}('mixed_' + p.parse_args().bits)\n"})
    done = check("--static", "train.py", directory=tmp_path)
    assert ([finding["code"] for finding in done.report["findings"]], done.report["skipped"]) == (["MP104"], [])


def test_a_cell_that_is_indented_as_a_whole_keeps_its_columns(tmp_path: Path) -> None:
    """IPython takes the indentation of the first line away."""
    indented = "".join(f"    {line}\n" for line in WRONG.splitlines())
    names = list(write(tmp_path, {"plain.ipynb": code(WRONG), "moved.ipynb": code(indented)}).glob("*.ipynb"))
    plain, moved = (
        check("--static", name.name, directory=tmp_path).report["findings"] for name in sorted(names, reverse=True)
    )
    assert [(f["line"], f["column"] + 4, f["end_column"] + 4) for f in plain] == [
        (f["line"], f["column"], f["end_column"]) for f in moved
    ]


def test_a_line_behind_a_prompt_keeps_its_columns(tmp_path: Path) -> None:
    """IPython takes the prompts of a session away."""
    session = "".join(f">>> {line}\n" for line in WRONG.splitlines())
    write(tmp_path, {"plain.ipynb": code(WRONG), "session.ipynb": code(session)})
    plain, moved = (
        check("--static", name, directory=tmp_path).report["findings"] for name in ("plain.ipynb", "session.ipynb")
    )
    assert [(f["line"], f["column"] + 4, f["end_column"] + 4) for f in plain] == [
        (f["line"], f["column"], f["end_column"]) for f in moved
    ]


def test_a_file_that_is_only_imported_is_shown_as_the_others_are(tmp_path: Path) -> None:
    """As in pre-commit, which names the files that were changed."""
    helper = "import tensorflow as tf\n\n\ndef shift(x):\n    return x + tf.ones([4])\n"
    layer = "import tensorflow as tf\nfrom nets.helper import shift\n\n\nclass A(tf.keras.layers.Layer):\n"
    layer += "    def call(self, x):\n        return shift(x)\n"
    train = 'import nets.layer\nimport keras\nkeras.mixed_precision.set_global_policy("mixed_float16")\n'
    write(tmp_path, {"nets/__init__.py": "", "nets/helper.py": helper, "nets/layer.py": layer, "train.py": train})
    report = check("--static", "nets/layer.py", "train.py", "--select", "MP202", directory=tmp_path).report
    assert [(found["path"], found["line"]) for found in report["findings"]] == [("nets/helper.py", 5)]


@pytest.mark.parametrize(
    ("made", "use", "whose"),
    [
        ("opt = LossScaleOptimizer(Adam())", "made.opt.lr", "the LossScaleOptimizer has"),
        (
            "opt = LossScaleOptimizer(Adam()) if N else LossScaleOptimizer(SGD())",
            "made.opt.lr",
            "the LossScaleOptimizer has",
        ),
        ("model.compile(Adam())", "made.model.optimizer.lr", "the LossScaleOptimizer that compile() made has"),
    ],
)
def test_who_made_a_wrapper_in_another_file_is_said(made: str, use: str, whose: str, tmp_path: Path) -> None:
    head = (
        "import keras\nfrom keras.mixed_precision import LossScaleOptimizer\nfrom keras.optimizers import SGD, Adam\n"
        'keras.mixed_precision.set_global_policy("mixed_float16")\nmodel = keras.Sequential([keras.layers.Dense(1)])\n'
    )
    write(tmp_path, {"made.py": f"{head}{made}\n", "train.py": f"import made\nprint({use})\n"})
    for target in ("train.py", "."):
        report = check("--static", target, "--select", "MP301", "--keras=3", directory=tmp_path).report
        assert [whose in found["message"] for found in report["findings"]] == [True], target


SETTINGS = """from tensorflow.keras import mixed_precision
import tensorflow as tf


class Settings:
    def __init__(self, half):
        self.optimizer = tf.keras.optimizers.Adam()
        if half:
            policy = mixed_precision.Policy("mixed_float16")
            {use}
"""
USER = "from settings import Settings\nimport tensorflow as tf\nmade = Settings(True)\n{more}"
USER += "model = tf.keras.Sequential([tf.keras.layers.Dense(3)])\nmodel.compile(made.optimizer, 'mse')\n"


@pytest.mark.parametrize(
    ("use", "more", "lines"),
    [
        ("self.wrapped = True", "", [9]),
        ("mixed_precision.set_global_policy(policy)", "", []),
        ("self.policy = policy", "tf.keras.mixed_precision.set_global_policy(made.policy)\n", []),
        ("self.kept = [policy]", "", []),
        ("self.wrapped = True", "tf.keras.mixed_precision.set_global_policy('mixed_float16')\n", []),
    ],
    ids=["left", "set", "set by the caller", "kept", "another one set"],
)
def test_a_policy_that_a_function_of_another_file_leaves_is_told_by_the_program(
    tmp_path: Path, use: str, more: str, lines: list[int]
) -> None:
    write(tmp_path, {"settings.py": SETTINGS.format(use=use), "train.py": USER.format(more=more)})
    for target in (".", "train.py"):
        found = check("--static", target, "--select", "MP115", directory=tmp_path).report["findings"]
        assert [(finding["path"], finding["line"]) for finding in found] == [("settings.py", line) for line in lines]


TRAINER = """import keras
from .layers import network


class Trainer:
    def __init__(self, settings):
        if settings["bits"] == 16:
            keras.config.set_dtype_policy("mixed_float16")
        self.model = network(8)
"""
GRID = """import keras
import tensorflow as tf


class Grid(keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.linspace(0.0, 1.0, 8)[None, :, None]


def network(length):
    inputs = keras.Input((length, 2))
    return keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(Grid()(inputs)))
"""


@pytest.mark.parametrize("bits", [16, 32])
def test_a_program_gets_what_sets_its_policy_from_a_package(tmp_path: Path, bits: int) -> None:
    """It names no library itself, and only the package's `__init__` imports the file that sets a policy."""
    main = f"from mine import Trainer\n\nTrainer({{'bits': {bits}}}).model.summary()\n"
    package = {"mine/__init__.py": "from .trainer import Trainer\n", "mine/trainer.py": TRAINER, "mine/layers.py": GRID}
    write(tmp_path, {"main.py": main, **package})
    for target in (".", "main.py"):
        found = check("--static", target, "--select", "MP202", "--keras=3", directory=tmp_path).report["findings"]
        assert [(one["path"], one["line"]) for one in found] == ([("mine/layers.py", 7)] if bits == 16 else []), target


POLICIES = (
    "import keras\n\n\ndef policy_for(name):\n    return keras.DTypePolicy({'half': 'mixed_float16'}.get(name, name))\n"
)
ASKING = "import keras\nfrom policies import policy_for\n{use}\n"
ASKING += "keras.Sequential([keras.layers.Dense(3)]).compile('adam', 'mse')\n"


@pytest.mark.parametrize(
    ("use", "lines"),
    [
        ("policy = policy_for('half')", [3]),
        ("policy = policy_for('half'); keras.config.set_dtype_policy(policy)", []),
        ("layer = keras.layers.Dense(3, dtype=policy_for('half'))", []),
        ("HALF = policy_for('half')", []),
        ("policy = policy_for('float32')", []),
    ],
    ids=["left", "set", "given to a layer", "constant", "float32"],
)
def test_a_policy_that_a_function_of_another_file_returns_is_told_where_it_gets_its_name(
    tmp_path: Path, use: str, lines: list[int]
) -> None:
    write(tmp_path, {"policies.py": POLICIES, "train.py": ASKING.format(use=use)})
    for target in (".", "train.py"):
        found = check("--static", target, "--select", "MP115", directory=tmp_path).report["findings"]
        assert [(one["path"], one["line"]) for one in found] == [("train.py", line) for line in lines]


OPTIMIZER = "import keras\n\nclass Mine(keras.optimizers.Optimizer):\n    pass\n"
WRAPPED = "import keras\nopt = keras.mixed_precision.LossScaleOptimizer(Mine())\n"


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"train.py": OPTIMIZER + WRAPPED}, "line 3"),
        ({"train.py": "from nets.own import Mine\n" + WRAPPED, "nets/own.py": OPTIMIZER}, "nets/own.py, line 3"),
        ({"train.ipynb": code("x = 1\ny = 2\n", OPTIMIZER, WRAPPED)}, "cell 2, line 3"),
    ],
    ids=["the same file", "another file", "a notebook"],
)
def test_a_place_in_a_message_can_be_found(tmp_path: Path, files: dict[str, str | bytes], place: str) -> None:
    write(tmp_path, files)
    (found,) = check("--static", next(iter(files)), "--select", "MP304", directory=tmp_path).report["findings"]
    assert found["help"] == f"Define `update_step` in `Mine` ({place})."


@pytest.mark.parametrize("name", ["print.py", "utf16.py", "nothing.ipynb", "no_cells.ipynb"])
def test_a_named_file_that_cannot_be_read_ends_with_2(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: FILES[name][0], "good.py": WRONG})
    assert check("--static", name, directory=tmp_path).exit_code == 2
    assert check("--static", "good.py", name, "--exit-zero", directory=tmp_path).exit_code == 2
    assert check("--static", "good.py", name, "--ignore", "MP", directory=tmp_path).exit_code == 2


def test_an_import_that_cannot_be_read_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"train.py": "import helper, broken\n" + WRONG, "helper.py": "x = 1\n", "broken.py": "print 'x'\n"})
    read = os.open

    def refuse(path: Path, *how: int) -> int:
        if Path(path).name == "helper.py":
            raise PermissionError(13, "Permission denied")
        return read(path, *how)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "open", refuse)
    for text in ("train.py", "."):
        diagnosis = diagnose(Settings((target_from_text(text),), static=True), SilentProgress())
        told = [(f.code, f.location.path) for f in diagnosis.findings if f.location]
        of_others = [("MP001", "broken.py"), ("MP001", "helper.py")] if text == "." else []
        assert told == [*of_others, ("MP101", "train.py")]
        assert diagnosis.exit_code == 1


# --- no source text or notebook, however mangled, crashes the stage -------------------------------------------------
PIECES = [
    *WRONG.splitlines(keepends=True),
    "def f(x):\n", "    return x\n", "class A(tf.keras.layers.Layer):\n", "  def call(self, x):\n", "    ", "\t",
    "(", ")", "[", "'''", '"', "\\\n", "\n", "# mpdoctor: ignore[MP101] x\n", "# mpdoctor: ignore-file[", "%%time\n",
    "!ls\n", "?", "print 'x'\n", "\0", "\ud800", "\ufeff", "é", "\r", "\f", "\u2028", "# coding: latin-1\n",
    "with tf.GradientTape() as t:\n",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=12).map("".join)
JSONS = st.recursive(st.none() | st.booleans() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=4))
CELL = st.fixed_dictionaries(
    {}, optional={"cell_type": st.sampled_from(["code", "markdown"]), "source": TEXTS | JSONS, "input": TEXTS}
)
NOTEBOOKS = st.fixed_dictionaries(
    {}, optional={"cells": st.lists(CELL | JSONS, max_size=4) | JSONS, "metadata": JSONS, "worksheets": JSONS}
)


def judged(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        diagnosis = diagnose(Settings((target_from_text(str(path)),), static=True), SilentProgress())
    assert diagnosis.crashed == ()
    assert diagnosis.exit_code in (0, 1, 2)


@settings(max_examples=60)
@given(TEXTS)
def test_no_text_crashes_the_stage(text: str) -> None:
    judged("train.py", text.encode(errors="surrogatepass"))


@settings(max_examples=30)
@given(st.binary(max_size=200))
def test_no_bytes_crash_the_stage(data: bytes) -> None:
    judged("train.py", data)
    judged("train.ipynb", data)


@settings(max_examples=60)
@given(NOTEBOOKS)
def test_no_notebook_crashes_the_stage(notebook: object) -> None:
    judged("train.ipynb", json.dumps(notebook).encode())


# --- what a project configures --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('slect = ["MP1"]', ":2: [tool.mpdoctor] there is no setting 'slect'. Did you mean select?"),
        ('fail_on = "error"', ":2: [tool.mpdoctor] there is no setting 'fail_on'. Did you mean fail-on?"),
        ("color = true", ":2: [tool.mpdoctor] there is no setting 'color'. It knows select"),
        ('select = "MP1"', ':2: [tool.mpdoctor] select must be a list of strings, such as select = ["MP3"].'),
        ("ignore = [1]", ":2: [tool.mpdoctor] ignore must be a list of strings"),
        ('fail-on = "fatal"', ':2: [tool.mpdoctor] fail-on must be "error", "warning" or "info", and not \'fatal\'.'),
        ("keras = 2.15", ':2: [tool.mpdoctor] keras must be a string, such as keras = "2.15".'),
        ('keras = "four"', ":2: [tool.mpdoctor] 'four' is no Keras"),
        ("assume-mixed = 1", ":2: [tool.mpdoctor] assume-mixed must be true or false."),
        ('docs-url = "docs.example"', ':2: [tool.mpdoctor] docs-url must be an address, such as docs-url = "https://'),
        ('docs-url = "https://a/)![x](https://b/c.png"', ":2: [tool.mpdoctor] docs-url must be an address"),
        ('docs-url = "https://a b"', ":2: [tool.mpdoctor] docs-url must be an address"),
        ('per-file-ignores = ["MP1"]', ":2: [tool.mpdoctor] per-file-ignores must be a table"),
        ('per-file-ignores = { "a*" = "MP1" }', '[tool.mpdoctor] "a*" must be a list of strings'),
        ("select = [", "is no TOML: "),
        pytest.param(f"select = {'9' * 5000}", "is no TOML: Exceeds the limit", id="more digits than Python reads"),
    ],
)
def test_a_mistake_in_the_configuration_is_told_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    write(tmp_path, {"pyproject.toml": f"[tool.mpdoctor]\n{text}\n"})
    with pytest.raises(ConfigurationError) as error:
        configuration_above(tmp_path)
    assert says in str(error.value)


def test_a_mistake_in_the_configuration_ends_with_2(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": WRONG, "pyproject.toml": '[tool.mpdoctor]\nignore = ["MP1O1"]\n'})
    done = check("--static", "train.py", directory=tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "mpdoctor: pyproject.toml:2: [tool.mpdoctor] ignore: there is no rule 'MP1O1'. Did you"
    )
    assert check("--static", "train.py", "--config", "no.toml", directory=tmp_path).exit_code == 2
    write(tmp_path, {"other.toml": "[tool.other]\n"})
    done = check("--static", "train.py", "--config", "other.toml", directory=tmp_path)
    assert (done.exit_code, done.stderr) == (2, "mpdoctor: other.toml has no [tool.mpdoctor].\n")


def test_the_configuration_is_found_above_and_the_command_line_beats_it(tmp_path: Path) -> None:
    everything = (
        '[tool.mpdoctor]\nselect = ["MP1"]\nignore = ["MP101"]\n'
        'fail-on = "error"\nkeras = "2.10"\nassume-mixed = true\n'
    )
    write(tmp_path, {"pyproject.toml": everything, "a/pyproject.toml": "[project]\n", "a/b/train.py": WRONG})
    found = configuration_above(tmp_path / "a" / "b")
    assert (found.path, found.fail_on, found.assume_mixed) == (tmp_path / "pyproject.toml", Severity.ERROR, True)
    done = check("--static", "train.py", directory=tmp_path / "a" / "b")
    assert (done.exit_code, done.codes()) == (0, [])
    keras = done.report["targets"][0]["keras"]
    assert (keras["package"], keras["version"]) == ("tf.keras", "2.10")
    assert "pyproject.toml says keras = '2.10'" in keras["because"]
    again = check("--static", "train.py", "--ignore", "MP4", "--keras", "3", directory=tmp_path / "a" / "b")
    assert (again.exit_code, again.codes()) == (1, ["MP101"])
    assert again.report["targets"][0]["keras"]["because"] == "--keras 3"
    write(tmp_path, {"mine.toml": '[tool.mpdoctor]\nselect = ["MP9"]\n'})
    assert check("--static", "a/b/train.py", "--config", "mine.toml", directory=tmp_path).codes() == []


# --- which files ----------------------------------------------------------------------------------------------------
def walked(directory: Path, *exclude: PathPatterns) -> list[str]:
    return [str(path.relative_to(directory)) for path in files_below(directory, exclude).files]


def test_git_says_the_same(tmp_path: Path) -> None:
    """Nested .gitignore files and negations, as Git itself reads them."""
    names = ["a.py", "b.py", "gen_x.py", "gen_keep.py", "build/c.py", "sub/d.py", "sub/gen_e.py", "sub/deep/f.py",
             "sub/deep/build/g.py", "doc/h.ipynb", "doc/i.py", "dist/deep/j.py", "k.txt", "only/here/l.py",
             "only/m.py"]  # fmt: skip
    write(tmp_path, dict.fromkeys(names, "x = 1\n"))
    write(
        tmp_path,
        {
            ".gitignore": "# comment\n/build/\ngen_*.py\n!gen_keep.py\ndoc/*\n!doc/i.py\n"
            "dist/\nonly/*\n!only/here\n\n!\n",
            "sub/.gitignore": "!gen_e.py\n/deep/f.py\n",
            "dist/.gitignore": "!deep\n",
        },
    )
    git = ["git", "-c", "core.excludesFile=", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run([*git, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    kept = {name for name in listed.stdout.splitlines() if name.endswith((".py", ".ipynb"))}
    assert set(walked(tmp_path)) == kept
    assert "sub/gen_e.py" in kept and "dist/deep/j.py" not in kept
    below = {str(Path("sub") / name) for name in walked(tmp_path / "sub")}
    assert below == {name for name in kept if name.startswith("sub/")}
    assert walked(tmp_path / "dist") == ["deep/j.py"]  # it was asked for
    (tmp_path / ".git" / "info" / "exclude").write_text("a.py\n")
    assert "a.py" not in walked(tmp_path)


def test_what_is_left_out_of_a_directory(tmp_path: Path) -> None:
    names = [
        "a.py",
        ".hidden/b.py",
        "venv/pyvenv.cfg",
        "venv/c.py",
        "node_modules/d.py",
        "x/site-packages/e.py",
        "f/g.py",
    ]
    write(tmp_path, dict.fromkeys(names, ""))
    assert walked(tmp_path) == ["a.py", "f/g.py"]
    assert walked(tmp_path, PathPatterns(tmp_path, ("f/",))) == ["a.py"]
    assert walked(tmp_path / "f", PathPatterns(tmp_path, ("f/",))) == ["g.py"]


def test_exclude(tmp_path: Path) -> None:
    write(
        tmp_path, {"src/old/a.py": WRONG, "src/b.py": WRONG, "pyproject.toml": '[tool.mpdoctor]\nexclude = ["old/"]\n'}
    )
    assert [f["path"] for f in check("src", directory=tmp_path).report["findings"]] == ["src/b.py"]
    assert check("--static", "src/old/a.py", directory=tmp_path).codes() == ["MP101"]
    done = check("--static", "src/old/a.py", "--force-exclude", directory=tmp_path)
    assert (done.exit_code, done.codes()) == (0, [])


# --- which Keras ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "text", "package", "version"),
    [
        ("requirements.txt", "tensorflow==2.15.1\n", "tf.keras", "2.15.1"),
        ("requirements.txt", "numpy\ntensorflow-gpu~=2.10.0  # of 2022\n", "tf.keras", "2.10"),
        ("requirements-dev.txt", "tensorflow>=2.4,<2.16; python_version>='3.8'", "tf.keras", "2.15"),
        ("requirements.txt", "tensorflow == 2.12.0 --hash=sha256:abc", "tf.keras", "2.12.0"),
        ("requirements.txt", "tensorflow==2.16.2\nkeras==3.3.3\n", "keras", "3.3.3"),
        ("requirements.txt", "keras<3", "tf.keras", None),
        ("requirements/base.txt", "tensorflow>=2.17", "keras", None),
        ("requirements.txt", "-r more.in\n", "tf.keras", "2.11.0"),
        ("pyproject.toml", '[project]\ndependencies = ["tensorflow<2.11"]', "tf.keras", "2.10"),
        ("pyproject.toml", '[project.optional-dependencies]\ntf = ["keras>=3.5"]', "keras", None),
        ("pyproject.toml", '[dependency-groups]\ndev = ["tensorflow==2.18.0"]', "keras", None),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = "~2.15"', "tf.keras", "2.15"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = "~2"', None, None),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = "2.12.*"', "tf.keras", "2.12"),
        (
            "pyproject.toml",
            '[tool.poetry.group.x.dependencies]\ntensorflow = { version = "2.9.1" }',
            "tf.keras",
            "2.9.1",
        ),
        ("setup.cfg", "[options]\ninstall_requires =\n    tensorflow>=2.4,<2.5\n", "tf.keras", "2.4"),
        ("uv.lock", '[[package]]\nname = "tensorflow"\nversion = "2.13.1"\n', "tf.keras", "2.13.1"),
        ("requirements.txt", "tensorflow>=2.10\n", None, None),
        ("requirements.txt", "tensorflow\n", None, None),
        (
            "requirements.txt",
            "tensorflow==2.10; python_version<'3.9'\ntensorflow>=2.16; python_version>='3.9'\n",
            None,
            None,
        ),
        ("requirements.txt", "tensorflow-datasets==4.9\ntensorflow_hub==0.16\n", None, None),
        ("requirements.txt", "tensorflow===???\n-r requirements.txt\n\0\n", None, None),
        ("pyproject.toml", "tensorflow = [", None, None),
        ("setup.cfg", "tensorflow", None, None),
        ("requirements.txt", "tensorflow-gpu==1.14.0", "tf.keras", "1.14.0"),
        # setup.py is read and never run: a list in a call, a list with a name, a text of lines
        (
            "setup.py",
            "from setuptools import setup\nsetup(install_requires=['tensorflow-gpu==2.7.0'])",
            "tf.keras",
            "2.7.0",
        ),
        ("setup.py", "WANTED = [\n  'tensorflow>=2.4,<2.9',\n]\nraise SystemExit(WANTED)", "tf.keras", "2.8"),
        ("setup.py", "setup(extras_require={'tf': 'keras>=3.1\\nnumpy'.split()})", "keras", None),
        ("setup.py", "setup(keywords=['tensorflow', 'keras'], install_requires=['tensorflow'])", None, None),
        ("setup.py", "setup(install_requires=['tensorflow>=' + VERSION])", None, None),
        ("setup.py", "print 'tensorflow==2.7.0'", None, None),
        ("Pipfile", '[packages]\ntensorflow = "==2.4.1"\n', "tf.keras", "2.4.1"),
        ("Pipfile", '[packages]\ntensorflow = {version = ">=2.16", extras = []}\n', "keras", None),
        ("Pipfile", '[packages]\ntensorflow = "*"\n', None, None),
        ("Pipfile.lock", '{"default": {"tensorflow": {"version": "==2.13.0"}}}', "tf.keras", "2.13.0"),
        ("Pipfile.lock", '["tensorflow"]', None, None),
        ("environment.yml", "dependencies:\n  - python=3.8\n  - tensorflow-gpu=2.4\n", "tf.keras", "2.4"),
        ("environment.yml", "dependencies:\n  - conda-forge::tensorflow=2.6.0=cuda112py38\n", "tf.keras", "2.6"),
        ("environment.yaml", "dependencies:\n- 'tensorflow>=2.8,<2.11'\n", "tf.keras", "2.10"),
        ("environment_gpu.yml", "dependencies:\n- pip:\n  - tensorflow==2.5.3 # old\n", "tf.keras", "2.5.3"),
        ("train_env.yml", "dependencies:\n  - tensorflow=2.6.0=gpu_py37h1a511ff_0\n", "tf.keras", "2.6"),
        ("env-gpu.yaml", "dependencies:\n  - tensorflow-gpu=2.4\n", "tf.keras", "2.4"),
        ("environment.yml", "dependencies:\n- tensorflow\n- keras-applications=1.0\n", None, None),
        ("Dockerfile", "FROM tensorflow/tensorflow:2.9.1-gpu\n", "tf.keras", "2.9.1"),
        ("Dockerfile", "FROM tensorflow/tensorflow:2.9-gpu-jupyter AS base\n", "tf.keras", "2.9"),
        ("Dockerfile", "FROM --platform=linux/amd64 docker.example.org/tensorflow/tensorflow:2.17.0\n", "keras", None),
        ("docker/Dockerfile.gpu", "FROM nvcr.example.org/nvidia/tensorflow:21.02-tf2-py3\n", "tf.keras", "2.4"),
        ("Dockerfile", "FROM nvcr.example.org/nvidia/tensorflow:24.10-tf2-py3\n", "keras", None),
        ("Dockerfile", "FROM python:3.8\nRUN pip install -U numpy \\\n    tensorflow==2.11.0\n", "tf.keras", "2.11.0"),
        ("Dockerfile", "FROM tensorflow/tensorflow:latest-gpu\n", None, None),
        ("Dockerfile", "FROM nvcr.example.org/nvidia/tensorflow:21.02-tf1-py3\n", "tf.keras", "1.15"),
        ("Dockerfile", "FROM nvcr.example.org/nvidia/tensorflow:22.05-tf2-py3\n", "tf.keras", "2.8"),
        ("Dockerfile", "FROM nvcr.example.org/nvidia/tensorflow:latest\n", None, None),
        ("Dockerfile", "FROM nvcr.example.org/nvidia/tensorflow:xx.xx-tf2-py3\n", None, None),
        ("Dockerfile", "FROM nvcr.example.org/nvidia/merlin/merlin-tensorflow:nightly\n", None, None),
        ("Dockerfile", "FROM nvcr.example.org/nvidia/merlin/merlin-tensorflow-training:22.03\n", "tf.keras", "2.8"),
        ("Dockerfile", "FROM 1.example.org/tensorflow-training:2.2.0-gpu-py37-cu101\n", "tf.keras", "2.2.0"),
        ("Dockerfile", "FROM example.org/my-tensorflow:2.2.0\n", None, None),
        ("Dockerfile", "ARG FROM_IMAGE=nvidia/tensorflow:21.02-tf2-py3\nFROM ${FROM_IMAGE}\n", "tf.keras", "2.4"),
        ("Dockerfile", "ARG V='2.9.1'\nFROM tensorflow/tensorflow:$V-gpu AS base\n", "tf.keras", "2.9.1"),
        ("Dockerfile", "FROM tensorflow/tensorflow:${V:-2.9.1}-gpu\n", "tf.keras", "2.9.1"),
        ("Dockerfile", "ARG V\nFROM tensorflow/tensorflow:${V}\n", None, None),
        ("Dockerfile", "ENV A=1 TF=tensorflow==2.6.0\nRUN pip3 install -U ${TF}\n", "tf.keras", "2.6.0"),
        ("Dockerfile", "RUN if [ $V = tensorflow==1.15 ]; then pip install keras==2.6; fi\n", "tf.keras", "2.6"),
        ("Dockerfile", "RUN if [ $V = tensorflow==1.15 ]; then apt-get install g++-8; fi\n", None, None),
        # TF_USE_LEGACY_KERAS, where programs are started
        ("Dockerfile", "FROM tensorflow/tensorflow:2.17.0\nENV TF_USE_LEGACY_KERAS=1\n", "tf_keras", None),
        ("docker/Dockerfile", "FROM python:3.11\nENV A=1 \\\n    TF_USE_LEGACY_KERAS=True\n", "tf_keras", None),
        ("Dockerfile", "FROM tensorflow/tensorflow:2.17.0\nENV TF_USE_LEGACY_KERAS 1\n", "tf_keras", None),
        ("Dockerfile", "FROM tensorflow/tensorflow:2.17.0\n# ENV TF_USE_LEGACY_KERAS=1\n", "keras", None),
        ("Dockerfile", "FROM tensorflow/tensorflow:2.17.0\nENV TF_USE_LEGACY_KERAS=0\n", "keras", None),
        ("train.sh", "set -e\nexport TF_USE_LEGACY_KERAS=1\npython train.py\n", "tf_keras", None),
        ("scripts/train.sh", "TF_USE_LEGACY_KERAS='1' python train.py\n", "tf_keras", None),
        ("run.sh", "if [ $1 = old ]; then\n  export TF_USE_LEGACY_KERAS=1\nfi\n", None, None),
        ("run.sh", "TF_USE_LEGACY_KERAS=1 python a.py\nTF_USE_LEGACY_KERAS=0 python a.py\n", None, None),
        ("run.sh", "export TF_USE_LEGACY_KERAS=$LEGACY\n", None, None),
        (".env", "TF_USE_LEGACY_KERAS=true\n", "tf_keras", None),
        ("docker-compose.yml", "environment:\n  - TF_USE_LEGACY_KERAS=1\n", "tf_keras", None),
        ("docker-compose.yml", "environment:\n  TF_USE_LEGACY_KERAS: '1'\n", "tf_keras", None),
        ("environment.yml", "dependencies:\n- python\nvariables:\n  TF_USE_LEGACY_KERAS: 1\n", "tf_keras", None),
        ("Makefile", "train:\n\tTF_USE_LEGACY_KERAS=1 python train.py\n", "tf_keras", None),
    ],
)
def test_the_keras_that_a_project_asks_for(
    tmp_path: Path, name: str, text: str, package: str | None, version: str | None
) -> None:
    write(tmp_path, {name: text, "more.in": "tensorflow==2.11.0\n", "a/b/train.py": "", ".git/HEAD": ""})
    keras = keras_from_project(tmp_path / "a" / "b")
    assert (keras.package if keras else None) == package
    if keras is not None:
        assert version in (None, keras.version)
        assert keras.because.startswith(("more.in" if "-r" in text else Path(name).name) + " ")


@pytest.mark.parametrize(
    ("files", "package"),
    [
        ({}, None),
        ({"train.py": ""}, None),
        ({"setup.py": "setup()"}, "tf_keras"),
        ({"requirements.txt": "tensorflow\n"}, "tf_keras"),
        ({".git/HEAD": ""}, "tf_keras"),
        ({"Dockerfile": "FROM python:3.11\n"}, "tf_keras"),
    ],
)
def test_a_script_above_that_belongs_to_no_project_says_nothing(
    tmp_path: Path, files: dict[str, str], package: str | None
) -> None:
    """A home, or /tmp, may hold anybody's."""
    write(tmp_path, {"run.sh": "TF_USE_LEGACY_KERAS=1 python a/b/train.py\n", "a/b/train.py": "", **files})
    keras = keras_from_project(tmp_path / "a" / "b")
    assert (keras.package if keras else None) == package
    beside = keras_from_project(tmp_path)
    assert beside is not None
    assert beside.package == "tf_keras"


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('!pip install -q "tensorflow==2.9.*"', "2.9"),
        ("%pip install tensorflow==2.4.1 numpy", "2.4.1"),
        ("! python -m pip install tensorflow-gpu==2.6.0", "2.6.0"),
        ("!pip install -U tensorflow", "2.12.0"),
        ('!pip install "tensorflow>=2.10"', "2.12.0"),
        ("# !pip install tensorflow==2.4.1", "2.12.0"),
        ("print('pip install tensorflow==2.4.1')", "2.12.0"),
        ("!pip install tensorflow_hub==0.6.0", "2.12.0"),
    ],
)
@pytest.mark.parametrize("target", [".", "a.ipynb"])
def test_what_a_notebook_installs_is_nearest_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, version: str, target: str
) -> None:
    uses = "import tensorflow as tf\ntf.keras.mixed_precision.set_global_policy('mixed_float16')"
    write(tmp_path, {"a.ipynb": code(line, [uses]), "requirements.txt": "tensorflow==2.12.0", ".git/HEAD": ""})
    monkeypatch.chdir(tmp_path)
    (told,) = diagnose(Settings((target_from_text(target),), static=True, cache=False), SilentProgress()).targets
    others = [keras.version for keras, _ in told.other_keras]
    assert (others or [told.keras.version]) == [version]


HYPER = """from tensorflow import keras

class Hyper:
    def build(self, units):
        model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(4, activation="softmax")])
        model.compile("adam", "sparse_categorical_crossentropy")
        return model

hyper = Hyper()
"""
LAST = "keras.mixed_precision.set_global_policy(keras.mixed_precision.Policy('mixed_float16'))\n"


@pytest.mark.parametrize(
    ("name", "cells", "codes"),
    [
        ("a.ipynb", (HYPER, LAST), []),
        ("a.ipynb", (HYPER, LAST + "print('on')"), []),
        ("a.ipynb", (HYPER, LAST, "hyper.build(8)"), ["MP201"]),
        ("a.ipynb", (HYPER, LAST, "import tuner\ntuner.search(hyper)"), ["MP201"]),
        ("a.ipynb", ("from tensorflow import keras\n" + LAST, HYPER), ["MP201"]),
        ("a.py", (HYPER, LAST), ["MP201"]),  # others may import it
    ],
)
def test_a_policy_that_a_notebook_ends_with_is_in_force_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, cells: tuple[str, ...], codes: list[str]
) -> None:
    write(tmp_path, {name: code(*cells) if name.endswith("b") else "".join(cells), ".git/HEAD": ""})
    monkeypatch.chdir(tmp_path)
    for target in (".", name):
        settings = Settings((target_from_text(target),), static=True, cache=False, keras=Keras("tf_keras"))
        assert [finding.code for finding in diagnose(settings, SilentProgress()).findings] == codes


def test_a_package_without_a_release_says_nothing_beside_one_with(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "setup.py": "setup(install_requires=['tensorflow', 'keras'], extras_require={'test': ['tensorflow-cpu']})",
            "requirements.txt": "tensorflow==2.9.3\n",
            ".git/HEAD": "",
        },
    )
    keras = keras_from_project(tmp_path)
    assert keras is not None
    assert (keras.package, keras.version) == ("tf.keras", "2.9.3")
    assert keras.because == "requirements.txt asks for tensorflow==2.9.3"


def test_what_is_installed_by_a_lock_comes_before_what_is_asked_for_and_that_before_an_image(tmp_path: Path) -> None:
    said = []
    for name, text in (
        ("Dockerfile", "FROM tensorflow/tensorflow:2.9.1-gpu\n"),
        ("setup.py", "setup(install_requires=['tensorflow==2.8.0'])"),
        ("poetry.lock", '[[package]]\nname = "tensorflow"\nversion = "2.7.0"\n'),
    ):
        write(tmp_path, {name: text, ".git/HEAD": ""})
        keras = keras_from_project(tmp_path)
        assert keras is not None
        said.append(keras.because)
    assert said == [
        "Dockerfile starts from tensorflow/tensorflow:2.9.1-gpu",
        "setup.py asks for tensorflow==2.8.0",
        "poetry.lock locks tensorflow==2.7.0",
    ]


@pytest.mark.parametrize(
    ("starts", "package"),
    [
        ('COMMAND = "TF_USE_LEGACY_KERAS=1 python train.py"', "tf_keras"),
        ('os.system(f"CUDA_VISIBLE_DEVICES=0 TF_USE_LEGACY_KERAS=1 python {name}")', "tf_keras"),
        ('settings = "TF_USE_LEGACY_KERAS=1"; command = f"{settings} python train.py"', "tf_keras"),
        ('run(["env", "TF_USE_LEGACY_KERAS=True", "python", "train.py"])', "tf_keras"),
        ('raise ImportError("TF_USE_LEGACY_KERAS=1 is what this needs: pip install tf_keras")', "keras"),
        ('raise ImportError("install tf_keras and set TF_USE_LEGACY_KERAS=1")', "keras"),
        ('"""Start it as TF_USE_LEGACY_KERAS=1 python train.py."""', "keras"),
        ('run("TF_USE_LEGACY_KERAS=0 python train.py")', "keras"),
    ],
)
def test_a_program_that_starts_others_with_tf_keras(tmp_path: Path, starts: str, package: str) -> None:
    write(
        tmp_path, {"a.py": "import tensorflow as tf\n", "run.py": f"{starts}\n", "requirements.txt": "tensorflow==2.17"}
    )
    (target,) = check("--static", ".", directory=tmp_path).report["targets"]
    assert target["keras"]["package"] == package
    assert ("run.py starts programs with" in target["keras"]["because"]) is (package == "tf_keras")


def test_in_a_directory_each_file_is_judged_by_the_nearest_that_asks(tmp_path: Path) -> None:
    removed = "import tensorflow as tf\nloss = opt.get_scaled_loss(tf.ones(()))\n"
    loop = (
        "import tensorflow as tf\ntf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
        "opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())\n" + removed
    )
    write(
        tmp_path,
        {
            "requirements.txt": "tensorflow==2.17.0\n",
            "train.py": loop,
            "old/setup.py": "setup(install_requires=['tensorflow-gpu==2.7.0'])",
            "old/deep/train.py": loop,
            "ours/train.py": TF_KERAS + loop.replace("tf.keras", "tf_keras"),
            ".git/HEAD": "",
        },
    )
    done = check("--static", ".", directory=tmp_path)
    assert [(f["code"], f["path"]) for f in done.report["findings"] if f["code"] == "MP407"] == [("MP407", "train.py")]
    (target,) = done.report["targets"]
    assert {(other["keras"]["because"], *sorted(other["files"])) for other in target["other_keras"]} == {
        ("setup.py asks for tensorflow-gpu==2.7.0", "old/deep/train.py", "old/setup.py"),
        ("ours/train.py says so", "ours/train.py"),
    }


KERAS_3 = "import keras\nkeras.mixed_precision.set_global_policy('mixed_float16')\nkeras.ops.ones(1)\n"
INSTALLED = [
    (("tensorflow_cpu-2.4.4",), "3", ("tf.keras", "2.4.4", "2.4.4")),
    (("tensorflow-2.10.1", "keras-2.10.0"), "3", ("tf.keras", "2.10.0", "2.10.1")),
    (("tensorflow-2.17.0", "keras-3.4.1", "tf_keras-2.17.0"), "3", ("keras", "3.4.1", "2.17.0")),
    (("tensorflow-2.17.0", "keras-3.4.1", "tf_keras-2.17.0"), "tf_keras", ("tf_keras", "2.17.0", "2.17.0")),
    (("numpy-2.0.0",), "3", ("keras", "", "")),  # says nothing of it, and so the script does
]


@pytest.mark.parametrize("target", ["train.py", "."])
@pytest.mark.parametrize(("installed", "surroundings", "expected"), INSTALLED)
def test_the_python_that_was_named_says_by_its_files_which_keras_it_is(
    tmp_path: Path, installed: tuple[str, ...], surroundings: str, expected: tuple[str, ...], target: str
) -> None:
    python = tmp_path / "env" / "bin" / "python"
    write(tmp_path, {"env/bin/python": f"#!/bin/sh\ntouch {tmp_path}/started\n", "work/train.py": KERAS_3})
    write(tmp_path, {f"env/lib/python3.9/site-packages/{name}.dist-info/METADATA": "" for name in installed})
    write(tmp_path, {"work/requirements.txt": "tensorflow==2.8.0\n"})
    python.chmod(0o755)
    arguments = "--static", "--python", str(python), target
    done = check(*arguments, directory=tmp_path / "work", keras=surroundings)
    (told,) = done.report["targets"]
    keras = told["keras"] if target != "." or "numpy" not in installed[0] else told["other_keras"][0]["keras"]
    assert (keras["package"], keras["version"] or "", keras["tensorflow"] or "") == expected
    assert ("--python" in keras["because"]) is ("numpy" not in installed[0])
    assert not (tmp_path / "started").exists()


TWO_CORES = "import os, runpy; os.cpu_count = lambda: 2; runpy.run_module('mpdoctor', run_name='__main__')"


def test_processes_that_judge_a_share_say_nothing_when_they_end(tmp_path: Path) -> None:
    write(tmp_path, {f"{name}.py": WRONG + "# of a long file, which names keras\n" * 10_000 for name in "abc"})
    done = check("--static", "--no-cache", "-q", ".", directory=tmp_path, launcher=("-c", TWO_CORES))
    assert done.codes() == ["MP101"] * 3
    assert done.stderr == ""


def test_the_report_says_which_keras_and_why(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"requirements.txt": "tensorflow==2.10.1\n", "a.py": TF_KERAS, "b.py": WRONG},
    )
    done = check(".", directory=tmp_path)
    (target,) = done.report["targets"]
    assert (target["keras"]["version"], target["keras"]["because"]) == (
        "2.10.1",
        "requirements.txt asks for tensorflow==2.10.1",
    )
    assert [(other["keras"]["package"], other["files"]) for other in target["other_keras"]] == [("tf_keras", ["a.py"])]
    shown = " ".join(check(".", directory=tmp_path, output_format="terminal").stdout.split())
    assert "judged by tf.keras 2.10.1 (requirements.txt asks for tensorflow==2.10.1), tf_keras for 1 file" in shown


def test_a_program_says_for_what_it_imports_which_keras_it_is(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "main.py": "import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\nimport model\n",
            "model.py": "import tensorflow as tf\ntf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
            "opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())\n"
            "loss = opt.get_scaled_loss(tf.ones(()))\n",  # gone in Keras 3
        },
    )
    for targets in (["main.py"], ["."], ["main.py", "model.py"], ["model.py", "main.py"]):
        assert check("--static", *targets, directory=tmp_path).codes() == [], targets
    assert check("--static", "model.py", directory=tmp_path).codes() == ["MP407"]


# --- formats, standard input, fingerprints --------------------------------------------------------------------------
@pytest.mark.parametrize("output_format", ["terminal", "concise", "json", "github", "sarif"])
def test_every_format_keeps_the_contract(tmp_path: Path, output_format: str) -> None:
    write(tmp_path, {"a.py": WRONG, "b.py": "print 'x'\n"})

    def run(*arguments: str) -> Check:
        return check("--static", *arguments, directory=tmp_path, output_format=output_format)

    counted = run("a.py", "--statistics")
    assert counted.exit_code == 1
    assert "MP101" in counted.stdout
    assert "1  MP101  error    nonexistent-api\n" in (counted.stdout if output_format == "terminal" else counted.stderr)
    silent = run("a.py", "--select", "MP9")
    assert (silent.exit_code, silent.stderr) == (0, "")
    assert "LossScaleOptimizer" not in silent.stdout
    assert run("a.py", "--exit-zero").exit_code == 0
    assert run("b.py", "--exit-zero").exit_code == 2


def test_standard_input(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/helper.py": "import tensorflow as tf\nOPT = tf.keras.optimizers.Adam()\n"})

    def run(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mpdoctor", "check", "-", "--output-format", "concise", *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path)

    done = run(WRONG)
    assert (done.returncode, done.stdout[:20]) == (1, "stdin.py:2:7: MP101 ")
    assert run(WRONG, "--stdin-filename", "pkg/new.py").stdout.startswith("pkg/new.py:2:7: MP101 ")
    assert run(code(WRONG), "--stdin-filename", "n.ipynb").stdout.startswith("n.ipynb:cell 1:2:7: MP101 ")
    assert run("x = 1\n").returncode == 0
    assert run("print 'x'\n").returncode == 2


def test_equal_lines_have_their_own_fingerprints_and_keep_them(tmp_path: Path) -> None:
    line = WRONG.splitlines()[1]
    write(tmp_path, {"a.py": WRONG + line + "\n", "b.py": "'''More.'''\n\n" + WRONG + "\n# and more\n" + line + "\n"})
    first = [f["fingerprint"] for f in check("--static", "a.py", directory=tmp_path).report["findings"]]
    assert len(set(first)) == 2
    (tmp_path / "b.py").replace(tmp_path / "a.py")
    assert [f["fingerprint"] for f in check("--static", "a.py", directory=tmp_path).report["findings"]] == first


def test_what_two_targets_reach_is_told_once(tmp_path: Path) -> None:
    helper = "import tensorflow as tf\n\n\ndef wrap(opt):\n    return tf.mixed_precision.LossScaleOptimizer(opt)\n"
    user = "import tensorflow as tf\nfrom helper import wrap\nwrap(tf.keras.optimizers.Adam())\n"
    write(tmp_path, {"helper.py": helper, "a.py": user, "b.py": user})
    for targets in (["a.py", "helper.py", "b.py"], ["helper.py", "a.py"], [".", "a.py"], ["."]):
        done = check("--static", *targets, directory=tmp_path)
        assert [(f["path"], f["line"]) for f in done.report["findings"]] == [("helper.py", 5)], targets


def test_the_option_makes_no_keras_3_of_a_file_that_imports_tf_keras(tmp_path: Path) -> None:
    fixed = "opt = tf_keras.mixed_precision.LossScaleOptimizer(o, dynamic=False, initial_scale=128)\n"
    write(tmp_path, {"a.py": TF_KERAS + fixed, "b.py": (TF_KERAS + fixed).replace("tf_keras", "keras")})
    done = check(".", "--keras", "3", directory=tmp_path)
    assert [(f["path"], f["code"]) for f in done.report["findings"]] == [("b.py", "MP310")]
    (target,) = done.report["targets"]
    assert target["keras"]["package"] == "keras"
    assert [(other["keras"]["package"], other["files"]) for other in target["other_keras"]] == [("tf_keras", ["a.py"])]
    assert check("--static", "a.py", "--keras", "3", directory=tmp_path).codes() == []


def test_a_directory_may_be_named_by_a_roundabout_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of it that import one another are shown by one name, whoever came upon them."""
    write(tmp_path, {"here/x.py": "", "there/pkg/__init__.py": "", "there/pkg/a.py": WRONG, "there/pkg/z.py": WRONG})
    (tmp_path / "there/pkg/a.py").write_text("from pkg import z\n" + WRONG)
    monkeypatch.chdir(tmp_path / "here")
    target = target_from_text(str(tmp_path / "here" / ".." / "there"))
    findings = diagnose(Settings(targets=(target,), static=True), SilentProgress()).findings
    assert [(Path(f.location.path).name, f.location.line) for f in findings if f.location] == [("a.py", 3), ("z.py", 2)]
