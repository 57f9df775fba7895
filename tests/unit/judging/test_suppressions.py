"""Findings that were answered already: ignore comments, per-file-ignores, and comments of no use (MP005)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from checking import check
from judging import facts_of, findings_in, lines_and_codes

from mpdoctor.facts.location import Location
from mpdoctor.judging.suppressions import suppressions_from_facts
from mpdoctor.program.suppression import Suppression, SuppressionFacts
from mpdoctor.rules.registry import rule_by_code_or_name

LINE = "opt = tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())"
START = "import tensorflow as tf\n\n"


def told(text: str) -> set[tuple[int, str]]:
    return lines_and_codes(findings_in(facts_of(START + text, "3")))


SILENT = [
    f"{LINE}  # mpdoctor: ignore[MP101] its reason\n",
    f"{LINE}  #mpdoctor:ignore[mp101]\n",
    f"{LINE}  # mpdoctor: ignore [MP1]\n",
    f"{LINE}  # mpdoctor: ignore[nonexistent-api]\n",
    f"{LINE}  # noqa: E501  # mpdoctor: ignore[MP101]\n",
    f"{LINE} ; x = 1  # mpdoctor: ignore[MP101]\n",
    # any line of the statement
    "opt = tf.mixed_precision.LossScaleOptimizer(  # mpdoctor: ignore[MP101]\n    tf.keras.optimizers.Adam()\n)\n",
    "opt = tf.mixed_precision.LossScaleOptimizer(\n    tf.keras.optimizers.Adam()  # mpdoctor: ignore[MP101]\n)\n",
    "opt = tf.mixed_precision.LossScaleOptimizer(\n    tf.keras.optimizers.Adam()\n)  # mpdoctor: ignore[MP101]\n",
    "opt = tf.mixed_precision.LossScaleOptimizer(\n    # mpdoctor: ignore[MP101]\n    tf.keras.optimizers.Adam()\n)\n",
    "opt = \\\n    tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())  # mpdoctor: ignore[MP101]\n",
    "def f(a=tf.mixed_precision.LossScaleOptimizer(  # mpdoctor: ignore[MP101]\n    opt)):\n    return a\n",
    # the whole file, from wherever it stands
    f"# mpdoctor: ignore-file[MP101] reason\n{LINE}\n{LINE}\n",
    f"{LINE}\n{LINE}\n\n# mpdoctor: ignore-file[MP1, MP101]\n",
    f"if True:\n    # mpdoctor: ignore-file[MP101]\n    {LINE}\n",
    f"{LINE}  # mpdoctor: ignore-file[MP101]\n",
]


@pytest.mark.parametrize("text", SILENT, ids=range(len(SILENT)))
def test_a_comment_suppresses(text: str) -> None:
    assert told(text) == set()


SPEAKING = [
    (f"{LINE}\n", {(3, "MP101")}),
    (f's = "# mpdoctor: ignore-file[MP101]"\n{LINE}\n', {(4, "MP101")}),
    (f'{LINE}; s = "# mpdoctor: ignore[MP101]"\n', {(3, "MP101")}),
    (f'"""\n# mpdoctor: ignore-file[MP101]\n"""\n{LINE}\n', {(6, "MP101")}),
    (f"{LINE}  # ignore[MP101]\n", {(3, "MP101")}),
    (f"{LINE}  # mpdoctor: ignored[MP101]\n", {(3, "MP101")}),
    (f"{LINE}  # mpdoctor: ignore[MP306]\n", {(3, "MP101"), (3, "MP005")}),
    (f"{LINE}  # mpdoctor: ignore\n", {(3, "MP101"), (3, "MP005")}),
    (f"{LINE}  # mpdoctor: ignore[]\n", {(3, "MP101"), (3, "MP005")}),
    (f"{LINE}  # mpdoctor: ignore MP101\n", {(3, "MP101"), (3, "MP005")}),
    (f"{LINE}  # mpdoctor: ignore[MP101\n", {(3, "MP101"), (3, "MP005")}),
    (f"# mpdoctor: ignore[MP101]\n{LINE}\n", {(4, "MP101"), (3, "MP005")}),
    (f"x = 1  # mpdoctor: ignore[MP101]\n{LINE}\n", {(4, "MP101"), (3, "MP005")}),
    ("x = 1  # mpdoctor: ignore[MP999]\n", {(3, "MP005")}),
    ("# mpdoctor: ignore-file[MP101]\n", {(3, "MP005")}),
    (f"{LINE}  # mpdoctor: ignore[MP101, MP306]\n", {(3, "MP005")}),
    # looks at training alone: the source does not say whether it is of use
    ("x = 1  # mpdoctor: ignore[MP904]\n", set()),
    # of Keras 2 alone
    ("x = 1  # mpdoctor: ignore[MP307]\n", set()),
    ("x = 1  # mpdoctor: ignore[MP306, MP005] kept for tf_keras\n", set()),
]


@pytest.mark.parametrize(("text", "expected"), SPEAKING, ids=range(len(SPEAKING)))
def test_what_a_comment_leaves(text: str, expected: set[tuple[int, str]]) -> None:
    assert told(text) == expected


def test_lines_of_a_notebook_are_those_of_its_cells(tmp_path: Path) -> None:
    cells = ["%matplotlib inline\nimport tensorflow as tf", f"!ls\n{LINE}  # mpdoctor: ignore[MP101]", LINE]
    notebook = {"cells": [{"cell_type": "code", "source": text} for text in cells], "nbformat": 4, "metadata": {}}
    (tmp_path / "n.ipynb").write_text(json.dumps(notebook))
    report = check("n.ipynb", directory=tmp_path).report
    assert [(f["code"], f["cell"], f["line"]) for f in report["findings"]] == [("MP101", 3, 1)]
    assert report["findings"][0]["excerpt"] == {"first_line": 1, "lines": [LINE]}
    assert report["summary"]["suppressed"] == 1


def test_what_one_run_did_not_ask_is_not_unused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(START + "x = 1  # mpdoctor: ignore[MP306]\n")
    for arguments, codes in (
        ([], ["MP005"]),
        (["--ignore", "MP306"], []),
        (["--select", "MP1,MP005"], []),
        (["--ignore", "MP005"], []),
        (["--select", "MP3"], []),
    ):
        assert check("--static", "a.py", *arguments, directory=tmp_path).codes() == codes, arguments


def test_a_suppressed_finding_is_counted_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(START + f"{LINE}  # mpdoctor: ignore[MP101]\n")
    done = check("--static", "a.py", directory=tmp_path)
    assert (done.exit_code, done.report["summary"]["suppressed"]) == (0, 1)
    shown = check("--static", "a.py", directory=tmp_path, output_format="terminal")
    assert "1 finding suppressed" in " ".join(shown.stdout.split())  # wherever a line ends


def test_a_comment_in_an_imported_file_counts(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(START + f"def wrap():\n    return {LINE[6:]}  # mpdoctor: ignore[MP101]\n")
    (tmp_path / "a.py").write_text("from helper import wrap\nwrap()\n")
    (tmp_path / "b.py").write_text("from helper import wrap\nwrap()\n")
    assert check("--static", "a.py", directory=tmp_path).codes() == []
    assert check("--static", "a.py", "b.py", directory=tmp_path).codes() == []


def test_per_file_ignores(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.mpdoctor.per-file-ignores]\n"tests/**" = ["MP101"]\n"*_old.py" = ["MP"]\n'
    )
    for name in ("tests/deep/a.py", "src/tests.py", "src/b_old.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(START + LINE + "\n")
    done = check(".", directory=tmp_path)
    assert [finding["path"] for finding in done.report["findings"]] == ["src/tests.py"]
    assert done.report["summary"]["suppressed"] == 2
    below = tmp_path / "tests" / "deep"  # the patterns are relative to the pyproject.toml
    assert check("--static", "a.py", directory=below).exit_code == 0


def facts(**changes: object) -> SuppressionFacts:
    comment = Suppression(Location("a.py", 3, 8, 3, 40), (3, 3), ("MP302", "MP306"))
    return dataclasses.replace(SuppressionFacts(comment), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "message", "remedy"),
    [
        (facts(), "", ""),
        (facts(unused=("MP302",)), "Part of this `ignore` comment", "`# mpdoctor: ignore[MP306]`"),
        (facts(unused=("MP302", "MP306")), "MP302 and MP306 are not found on this line", "Remove the comment"),
        (facts(unused=("MP302",), unknown=("MP306",)), "there is no rule MP306, and MP302 is not", "Remove"),
    ],
)
def test_what_is_said_of_a_useless_comment(facts: SuppressionFacts, message: str, remedy: str) -> None:
    rule = rule_by_code_or_name("MP005")
    assert rule is not None
    found = list(rule.looks["in_suppression"](facts))
    assert len(found) == bool(message)
    for finding in found:
        assert message in finding.message
        assert remedy in finding.help


def test_the_reason_is_kept() -> None:
    (comment,) = suppressions_from_facts(facts_of("x = 1  # mpdoctor: ignore[MP302, MP3]  it is so\n", "3"))
    assert (comment.selectors, comment.reason, comment.lines) == (("MP302", "MP3"), "it is so", (1, 1))


HALF_SOFTMAX = """from tensorflow import keras
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "softmax")]){output}
model.compile("adam", "sparse_categorical_crossentropy"){loss}
model.fit(x, y)
"""


@pytest.mark.parametrize("loss", ["", "  # mpdoctor: ignore[MP507] three digits will do"])
def test_a_comment_on_the_line_of_what_is_explained_is_of_use(loss: str) -> None:
    line = START.count("\n") + 3
    assert told(HALF_SOFTMAX.format(output="", loss=loss)) == {(line, "MP201")}
    assert told(HALF_SOFTMAX.format(output="  # mpdoctor: ignore[MP201]", loss=loss)) == set()
