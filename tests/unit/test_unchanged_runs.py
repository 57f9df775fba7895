"""A check of source that says again what it said: only while every answer that it rests on is the same."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mpdoctor import source_stage
from mpdoctor.diagnosis import diagnose
from mpdoctor.finding import Crashed, Diagnosis, Severity
from mpdoctor.progress import SilentProgress
from mpdoctor.project.asked_of_system import are_answered_as, bytes_of, recorded
from mpdoctor.project.targets import target_from_text, with_its_files
from mpdoctor.settings.options import Settings
from mpdoctor.unchanged_runs import SUFFIX, KeptRun, diagnosis_of_files

HALF_OUTPUT = """import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(10, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
"""
SCOPE = "import tensorflow as tf\n\nscope = tf.keras.mixed_precision.experimental.Policy('mixed_float16')\n"
NOTEBOOK = {"cells": [{"cell_type": "code", "source": ["!pip install tensorflow==2.10\n", *SCOPE.splitlines(True)]}]}
PROJECT = {
    "pyproject.toml": "[project]\nname = 'mine'\ndependencies = ['tensorflow>=2.16']\n",
    "README.md": "Train with TensorFlow.\n",
    "train.py": f"from nets.blocks import block\nimport late\nimport linked\n{HALF_OUTPUT}",
    "plain.py": "import json\n",
    "nets/__init__.py": "",
    "nets/blocks.py": "import keras\n\n\ndef block(x):\n    return keras.layers.Dense(3)(x)\n",
    "old/requirements.txt": "tensorflow==2.10.1\n",
    "old/train.py": SCOPE,
    "old/explored.ipynb": json.dumps(NOTEBOOK),
    "conf/run.yaml": "policy: mixed_float16\n",
    "configured.py": "import yaml\n"
    + HALF_OUTPUT.replace('"mixed_float16"', "yaml.safe_load(open('conf/run.yaml'))['policy']"),
    "docker/Dockerfile": "FROM python:3.11\n",
    "quiet.py": HALF_OUTPUT.replace('"softmax")', '"softmax")]  # mpdoctor: ignore[MP201]').replace(")])", ")"),
}
Remember = Callable[[Settings, Callable[[], Diagnosis]], Diagnosis]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    top = tmp_path / "project"
    for name, text in PROJECT.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    (tmp_path / "shared.py").write_text(HALF_OUTPUT)
    (top / "linked.py").symlink_to(top / "plain.py")
    monkeypatch.chdir(top)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return top


def settings(*targets: str, **more: Any) -> Settings:
    return Settings(
        tuple(with_its_files(target_from_text(text), ()) for text in targets or (".",)), **{"static": True, **more}
    )


def said(chosen: Settings) -> tuple[Diagnosis, bool]:
    """What is said, and whether anything was looked at for it."""
    looked: list[bool] = []

    def look() -> Diagnosis:
        looked.append(True)
        return diagnose(chosen, SilentProgress())

    return diagnosis_of_files(chosen, look), bool(looked)


def said_anew(chosen: Settings) -> Diagnosis:
    return diagnose(dataclasses.replace(chosen, cache=False), SilentProgress())


def test_what_has_not_changed_is_not_looked_at_again(project: Path) -> None:
    first, second = said(settings()), said(settings())
    assert first[1] and not second[1] and first[0].findings
    assert second[0] == first[0] == said_anew(settings())


@pytest.mark.parametrize(
    "more",
    [
        {"ignore": ("MP201",)},
        {"assume_mixed": True},
        {"fail_on": Severity.ERROR},
        {"command": "mpdoctor check --static ."},
        {"docs_url": "https://example.org"},
    ],
    ids=str,
)
def test_other_settings_are_another_run(more: dict[str, Any], project: Path) -> None:
    said(settings())
    other, looked = said(settings(**more))
    assert looked and other == said_anew(settings(**more))
    assert not said(settings(**more))[1] and not said(settings())[1], "both are kept"


@pytest.mark.parametrize(
    "chosen",
    [{"cache": False}, {"static": False}, {"unsaved": {Path("/nowhere/plain.py"): b""}}, {"edited": {"plain.py": b""}}],
    ids=str,
)
def test_some_runs_are_always_made(chosen: dict[str, Any], project: Path) -> None:
    for _ in range(2):
        assert said(settings("plain.py", "quiet.py", **chosen))[1]


def test_one_program_is_always_looked_at(project: Path) -> None:
    assert [said(settings("train.py"))[1] for _ in range(2)] == [True, True]


def write(name: str, text: str = "") -> Callable[[Path], object]:
    def change(project: Path) -> None:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)

    return change


def link(name: str, to: str) -> Callable[[Path], object]:
    def change(project: Path) -> None:
        (project / name).unlink(missing_ok=True)
        (project / name).symlink_to(to)

    return change


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file": write("nets/blocks.py", "import keras\n\n\ndef block(x):\n    return x\n"),
    "a file of the same size": lambda project: write("plain.py", "import jso\n")(project),
    "a file of settings": write("conf/run.yaml", "policy: float32\n"),
    "a file of settings less": lambda project: (project / "conf" / "run.yaml").unlink(),
    "a new file": write("new.py", HALF_OUTPUT),
    "a file less": lambda project: (project / "quiet.py").unlink(),
    "an ignore comment": write("quiet.py", HALF_OUTPUT),
    "a module that was missing": write("late.py", HALF_OUTPUT),
    "a module in the place of a library": write("keras.py", "layers = None\n"),
    "a package's first file": lambda project: (project / "nets" / "__init__.py").unlink(),
    "a package in src": write("src/late/__init__.py", "print(1)\n"),
    "the project's requirements": write(
        "pyproject.toml", "[project]\nname = 'mine'\ndependencies = ['tensorflow<2.16']\n"
    ),
    "no project": lambda project: (project / "pyproject.toml").unlink(),
    "a folder's requirements": write("old/requirements.txt", "tensorflow==2.17.0\n"),
    "further requirements": write("requirements-gpu.txt", "tensorflow==2.10.0\n"),
    "a lock": write("nets/poetry.lock", '[[package]]\nname = "tensorflow"\nversion = "2.9.0"\n'),
    "an image": write("docker/Dockerfile", "FROM tensorflow/tensorflow:2.8.0\n"),
    "a notebook": write("old/explored.ipynb", json.dumps({"cells": []})),
    "where a link leads": link("linked.py", "quiet.py"),
    "a link out of the project": link("linked.py", "../shared.py"),
    "a repository above": lambda project: (project.parent / ".git").mkdir(),
    "TF_USE_LEGACY_KERAS": lambda project: os.environ.update(TF_USE_LEGACY_KERAS="1"),
    "what Git ignores": write(".gitignore", "quiet.py\n"),
}
HARMLESS: dict[str, Callable[[Path], object]] = {
    "prose where requirements say it": write("old/README.md", "pip install tensorflow==2.7.0\n"),
    "a module above the project": write("../late.py", HALF_OUTPUT),
    "a log": write("logs/events.out", "0"),
    "a file beside the project": write("../notes.txt", "0"),
    "a file that is touched": lambda project: os.utime(project / "train.py", (0, 0)),
    "another variable": lambda project: os.environ.update(MINE="1"),
    "a hidden file": write(".coverage", "0"),
}


@pytest.mark.parametrize("name", [*CHANGES, *HARMLESS])
def test_after_a_change_it_says_what_a_new_run_says(name: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TF_USE_LEGACY_KERAS", "MINE"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv(variable, "0")  # which is put back in the end
    before, _ = said(settings())
    {**CHANGES, **HARMLESS}[name](project)
    now, looked = said(settings())
    assert looked is (name in CHANGES)
    assert now == said_anew(settings())
    assert (now == before) or looked


def test_installed_packages_are_asked_for(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.setattr(sys, "path", [str(packages)])
    (project / "pyproject.toml").unlink()
    said(settings())
    (packages / "keras-2.15.0.dist-info").mkdir()
    (packages / "other-1.0.dist-info").mkdir()
    now, looked = said(settings())
    assert looked and now.targets[0].keras.version == "2.15.0" and now == said_anew(settings())


@pytest.mark.skipif(os.name == "nt", reason="Windows asks in other ways")
def test_nothing_is_asked_past_the_record(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path below the project, and above it, that a run looks at or opens stands in its record."""
    seen: set[str] = set()
    for name in ("stat", "lstat", "listdir", "scandir", "open", "readlink"):
        monkeypatch.setattr(os, name, _noting(getattr(os, name), seen))
    monkeypatch.setattr(source_stage, "most_processes", lambda: 1)
    chosen = settings(cache=False)
    seen.clear()
    with recorded() as record:
        diagnose(chosen, SilentProgress())
    noted = {absolute(about) for by_path in record.answers.values() for about in by_path}
    followed = {parent for path, real in record.answers["real_path"].items() for parent in _way(path, str(real))}
    above = str(project.parents[0])
    assert {path for path in seen - noted - followed if path.startswith(above)} == set()
    assert len(noted) > len(PROJECT) and record.is_steady


def _noting(ask: Callable[..., Any], seen: set[str]) -> Callable[..., Any]:
    def asked(path: Any = ".", *args: Any, **more: Any) -> Any:
        if isinstance(path, (str, os.PathLike)):
            seen.add(absolute(path))
        return ask(path, *args, **more)

    return asked


def _way(path: str, real: str) -> Iterator[str]:
    """All that lies on the way to a path, and to what it links to: whoever asks for the real path looks at it."""
    for end in (Path(absolute(path)), Path(real)):
        yield from map(str, (end, *end.parents))


def absolute(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - no link is followed


def test_a_file_that_changes_during_the_run_is_not_remembered(project: Path) -> None:
    with recorded() as record:
        bytes_of("plain.py")
        (project / "plain.py").write_text("import os\n")
        bytes_of("plain.py")
    assert not record.is_steady and not are_answered_as(record.answers)


def test_a_run_that_broke_is_not_remembered(project: Path) -> None:
    broken = dataclasses.replace(said_anew(settings()), crashed=(Crashed("MP201", "in_source", "KeyError"),))
    for _ in range(2):
        assert diagnosis_of_files(settings(), lambda: broken).crashed
    assert said(settings())[1]


def test_what_others_have_written_is_not_believed(project: Path, tmp_path: Path) -> None:
    """Neither damaged nor unsigned files, nor those that were signed under another name or for another mpdoctor."""
    said(settings())
    said(settings(ignore=("MP201",)))
    one, other = sorted((tmp_path / "cache").rglob(f"*{SUFFIX}"))
    contents = one.read_bytes(), other.read_bytes()
    for content in (b"", b"[]", contents[0][:-1], contents[0][32:], contents[1], b"\0" * 64):
        one.write_bytes(content)
        other.write_bytes(content if content != contents[1] else contents[0])
        assert said(settings())[1]
        assert said(settings())[0] == said_anew(settings())


def test_it_is_kept_where_it_can_be_written(project: Path, tmp_path: Path) -> None:
    run = KeptRun(tmp_path / "plain.txt" / "below", tmp_path / "key" / "cache.key", settings())
    (tmp_path / "plain.txt").write_text("")
    assert run.record(lambda: said_anew(settings())) == said_anew(settings())
    assert run.diagnosis() is None
