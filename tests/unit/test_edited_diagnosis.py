"""A diagnosis of edited text is that of edited files: findings, excerpts, comments and fingerprints of the source."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from mpdoctor import source_stage
from mpdoctor.diagnosis import diagnose
from mpdoctor.facts.location import Location
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.judging.excerpts import excerpt_from_location
from mpdoctor.judging.suppressions import Suppressions
from mpdoctor.progress import SilentProgress
from mpdoctor.project.edited_files import EditedFiles
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings

BEGIN = "import tensorflow as tf\ntf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
TRAIN = BEGIN + "from part import head\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(8), head()])\n"
TRAIN += "model.compile('adam', 'mse')\nmodel.fit([[1.0]], [[1.0]])\n"
PART = "import tensorflow as tf\n\n\ndef head():\n    return tf.keras.layers.Dense(2, activation='softmax')\n"
FLOAT32 = PART.replace("'softmax'", "'softmax', dtype='float32'")
IGNORED = PART.replace("'softmax')", "'softmax')  # mpdoctor: ignore[MP201]")
MOVED = "# é\n# more\n" + PART
SCOPE = "scope = tf.keras.mixed_precision.PolicyScope('mixed_float16')\n"


def notebook(*cells: str) -> str:
    made = [{"cell_type": "code", "metadata": {}, "source": cell, "outputs": []} for cell in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


# The target, the files, and the text that stands in for some of them.
EDITS: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "script, mended": ("train.py", {"train.py": TRAIN, "part.py": PART}, {"part.py": FLOAT32}),
    "script, spoilt": ("train.py", {"train.py": TRAIN, "part.py": FLOAT32}, {"part.py": PART}),
    "script, moved": ("train.py", {"train.py": TRAIN, "part.py": PART}, {"part.py": MOVED}),
    "script, answered": ("train.py", {"train.py": TRAIN, "part.py": PART}, {"part.py": IGNORED}),
    "script, asked again": ("train.py", {"train.py": TRAIN, "part.py": IGNORED}, {"part.py": PART}),
    "script itself": ("train.py", {"train.py": BEGIN + "\n", "part.py": PART}, {"train.py": BEGIN + SCOPE}),
    "script, no Python any more": ("train.py", {"train.py": TRAIN, "part.py": PART}, {"train.py": "= 1\n"}),
    "directory": (".", {"train.py": TRAIN, "part.py": PART, "more.py": TRAIN}, {"part.py": FLOAT32}),
    "directory, moved": (".", {"train.py": TRAIN, "pkg/a.py": BEGIN + SCOPE}, {"pkg/a.py": "\n" + BEGIN + SCOPE}),
    "notebook": ("n.ipynb", {"n.ipynb": notebook("1", BEGIN)}, {"n.ipynb": notebook("1", "2", BEGIN + SCOPE)}),
}


def laid_out(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(text.encode())


def diagnosed(target: str, edited: dict[str, bytes]) -> Diagnosis:
    settings = Settings((target_from_text(target),), static=True, edited=edited)
    diagnosis = diagnose(settings, SilentProgress())
    assert not diagnosis.crashed
    return diagnosis


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "project"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return here


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("name", EDITS)
def test_the_diagnosis_of_edited_text_is_the_one_of_edited_files(
    directory: Path, name: str, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever earlier runs have left in the cache."""
    monkeypatch.setattr(source_stage, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(source_stage, "most_processes", lambda: processes)
    target, files, texts = EDITS[name]
    laid_out(directory, files)
    before = diagnosed(target, {})
    edited = {os.path.realpath(path): text.encode() for path, text in texts.items()}
    found = [diagnosed(target, edited), diagnosed(target, edited)]
    assert diagnosed(target, {}) == before, "what was kept is not of the edited text"
    assert {path: (directory / path).read_bytes().decode() for path in files} == files
    laid_out(directory, texts)
    assert found == [diagnosed(target, {})] * 2
    assert found[0] != before


@pytest.mark.skipif(os.name == "nt", reason="links take rights there")
@pytest.mark.parametrize("target", ["link.py", "way/train.py", "way"])
def test_a_link_leads_to_edited_text(directory: Path, target: str) -> None:
    laid_out(directory, {"real/train.py": TRAIN, "real/part.py": PART})
    (directory / "way").symlink_to(directory / "real")
    (directory / "link.py").symlink_to(directory / "real" / "train.py")
    edited = {os.path.realpath("real/train.py"): (BEGIN + SCOPE).encode()}
    found = diagnosed(target, edited)
    assert "MP101" in [finding.code for finding in found.findings]
    laid_out(directory, {"real/train.py": BEGIN + SCOPE})
    assert found == diagnosed(target, {})


def test_a_file_that_only_the_run_reached_is_quoted_as_it_is_edited(directory: Path) -> None:
    laid_out(directory, {"late.py": "old = 1\n"})
    text = b"new = 1  # mpdoctor: ignore[MP201]\n"
    edited = {os.path.realpath("late.py"): text}
    place = Location("late.py", 1)
    excerpt = excerpt_from_location(place, {}, EditedFiles({}, edited))
    assert excerpt is not None and excerpt.lines == (text.decode().rstrip("\n"),)
    comments = Suppressions([], Settings((), edited=edited))
    finding = dataclasses.replace(_any_finding(directory), code="MP201", location=place)
    assert comments.left_of([finding]) == []
    assert Suppressions([], Settings(())).left_of([finding]) == [finding]


def _any_finding(directory: Path) -> Finding:
    laid_out(directory, {"any.py": BEGIN + SCOPE})
    return diagnosed("any.py", {}).findings[0]


def test_an_unsaved_text_goes_before_an_edited_one(directory: Path) -> None:
    here = directory / "a.py"
    here.write_text("disk")
    files = EditedFiles({here: b"unsaved"}, {os.path.realpath(here): b"edited", "/b.py": b"b"})
    assert files[here] == b"unsaved" and len(files) == len(set(files)) == 2
    assert here in files and Path("/c.py") not in files and "a.py" not in files
