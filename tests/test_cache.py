"""What a run remembers of the one before: never more than is still so."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_rules_contract import FIXTURE_FILES, FIXTURES

from mpdoctor.cache import Cache, users_cache
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed, Finding
from mpdoctor.rules.registry import all_rules
from mpdoctor.source_stage import SourceStage
from mpdoctor.source_stage.desk import Desk

CODES = frozenset(rule.code for rule in all_rules())
POLICY = 'import keras\nkeras.mixed_precision.set_global_policy("mixed_float16")\n'
LAYER = """
import tensorflow as tf

class Scale(tf.keras.layers.Layer):
    def call(self, x):
        return x + tf.ones([4])
"""


def found_in(
    files: Mapping[Path, str], cache: Cache | None, keras: Keras | None = None, codes: frozenset[str] = CODES
) -> list[Finding | Crashed]:
    stage = SourceStage(files, cache=cache)
    found = stage.judge(lambda path: keras or Keras(), codes, list(files.values()))
    stage.save()
    return found


def test_what_is_remembered_is_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fixture, by Keras 3 and by tf_keras; the second time nothing is looked at."""
    files = {path.absolute(): path.relative_to(FIXTURES).as_posix() for path in FIXTURE_FILES}
    kerases = (Keras(), Keras("tf_keras"))
    first = [found_in(files, Cache(tmp_path), keras) for keras in kerases]
    assert first[0] != first[1] and all(len(found) > 50 for found in first)
    for what in ("walk", "read", "judge"):
        monkeypatch.delattr(Desk, what)
    assert [found_in(files, Cache(tmp_path), keras) for keras in kerases] == first


def test_what_was_asked_is_part_of_it(tmp_path: Path) -> None:
    files = {path: path.name for path in (tmp_path / "layer.py", tmp_path / "main.py")}
    (tmp_path / "layer.py").write_text(LAYER)
    (tmp_path / "main.py").write_text(POLICY + "import layer\n")
    cache = tmp_path / "cache"
    for codes, expected in ((CODES, 1), (frozenset({"MP501"}), 0), (CODES, 1)):
        assert len(found_in(files, Cache(cache), codes=codes)) == expected
    alone = {tmp_path / "layer.py": "layer.py"}
    assert found_in(alone, Cache(cache)) == []
    assert len(found_in(files, Cache(cache))) == 1


def test_a_file_that_cannot_be_read_is_read_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks as if it were empty, and is not."""
    file = tmp_path / "layer.py"
    file.write_text("")
    files = {file: "layer.py"}
    assert found_in(files, Cache(tmp_path / "cache")) == []

    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path == file:
            raise PermissionError(13, "Permission denied")
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        (found,) = found_in(files, Cache(tmp_path / "cache"))
        assert isinstance(found, Finding) and found.code == "MP001"
    assert found_in(files, Cache(tmp_path / "cache")) == []


# What is wrong with the first depends on which of the others it imports, and what that says. (It is walked for a name.)
USE = "import keras\nfrom {} import Wrapper\nloss_scaled = Wrapper(keras.optimizers.Adam(), dynamic=False)\n"
PIECES = (
    *(USE.format(module) for module in ("a", "b", "pkg", "pkg.part")),
    "from .part import *\n",
    "import c; from pkg.part import Wrapper\n",
    "from é import Wrapper\n",
    "import keras\nWrapper = keras.optimizers.LossScaleOptimizer\n",
    "import keras\nWrapper = keras.optimizers.SGD\n",
    "from.part import*\n",
    "from .import part\nWrapper = part.Wrapper\n",
    POLICY,
    "def (\n",
)
NAMES = ("a.py", "b.py", "c.py", "é.py", "pkg/__init__.py", "pkg/part.py")
CHAIN = dict(zip(NAMES, (PIECES[2], PIECES[5], "", "", PIECES[4], PIECES[7]), strict=True))
edits = st.lists(st.dictionaries(st.sampled_from(NAMES), st.sampled_from((*PIECES, None)), max_size=2), max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries({name: st.sampled_from(PIECES) for name in NAMES}), edits, st.sets(st.sampled_from(NAMES)))
@example(CHAIN, [{"pkg/part.py": PIECES[8]}, {"pkg/part.py": PIECES[7]}], set())
@example(CHAIN, [{"pkg/part.py": PIECES[8]}], {"b.py", "pkg/part.py"})
@example(CHAIN | {"a.py": PIECES[1]}, [{"pkg/part.py": PIECES[8]}], set())
@example(CHAIN | {"a.py": PIECES[1]}, [{"b.py": None}, {"b.py": PIECES[7]}], {"b.py"})
@example(CHAIN | {"a.py": PIECES[1], "b.py": PIECES[6], "é.py": PIECES[7]}, [{"é.py": PIECES[8]}], set())
@example(CHAIN | {"pkg/__init__.py": PIECES[9]}, [{"pkg/part.py": PIECES[8]}], set())
@example(CHAIN | {"pkg/__init__.py": PIECES[10]}, [{"pkg/part.py": PIECES[8]}], set())
def test_after_any_edit_a_run_says_what_a_first_one_would(
    start: dict[str, str], edits: list[dict[str, str | None]], beyond: set[str]
) -> None:
    """Files are written, changed and removed between runs. Those `beyond` are only imported."""
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as kept:
        root = Path(directory)
        (root / "pkg").mkdir()
        for edit in (start, *edits):
            for name, text in edit.items():
                (root / name).unlink(missing_ok=True)
                if text is not None:
                    (root / name).write_text(text, encoding="utf-8")
            files = {root / name: name for name in NAMES if (root / name).exists() and name not in beyond}
            assert found_in(files, Cache(Path(kept))) == found_in(files, None)


class Calls:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


def test_a_cache_is_read_as_data(tmp_path: Path) -> None:
    (tmp_path / "layer.py").write_text(POLICY + LAYER)
    files = {tmp_path / "layer.py": "layer.py"}
    cache = tmp_path / "cache"
    first = found_in(files, Cache(cache))
    (file,) = cache.iterdir()
    kept = file.read_bytes()
    for content in (
        b"",
        b"nonsense",
        kept[: len(kept) // 2],
        pickle.dumps(Calls(f"touch {tmp_path / 'harm'}")),
        pickle.dumps(3),
        pickle.dumps((3, 4)),
    ):
        file.write_bytes(content)
        assert found_in(files, Cache(cache)) == first
    assert not (tmp_path / "harm").exists()
    assert file.read_bytes() == kept


def check(directory: Path, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mpdoctor", "check", ".", "--output-format", "concise", *options],
        cwd=directory,
        env={**os.environ, "XDG_CACHE_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_on_the_command_line(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    (project / "layer.py").write_text(POLICY + LAYER)
    without = check(project, home, "--no-cache")
    assert "MP202" in without.stdout and not home.exists()
    runs = [check(project, home) for _ in range(2)]
    assert [(run.returncode, run.stdout) for run in runs] == [(without.returncode, without.stdout)] * 2
    assert [path.suffix for path in home.glob("mpdoctor/*")] == [".pickle"]
    assert sorted(path.name for path in project.iterdir()) == ["layer.py"]
    (project / "layer.py").write_text(POLICY)
    assert "MP202" not in check(project, home).stdout


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "layer.py").write_text(POLICY + LAYER)
    (tmp_path / "home").write_text("a file where the directory would be")
    run = check(tmp_path, tmp_path / "home")
    assert "MP202" in run.stdout and run.stderr == ""


def test_without_a_home_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` would be a directory of the project then."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    assert users_cache() is None
    assert list(tmp_path.iterdir()) == []
