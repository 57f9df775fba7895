"""Which interpreter examines, what is said of those that cannot, and which others are named instead.

None of it needs TensorFlow: an interpreter that only claims to have it answers as one that has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpdoctor.interpreters import QUESTION, Interpreter, NoInterpreter, interpreter_for, interpreter_from_path
from mpdoctor.targets import Target

HERE = ".".join(map(str, sys.version_info[:3]))
NEEDS_A_SHELL = pytest.mark.skipif(os.name == "nt", reason="this system has no /bin/sh")
Make = Callable[[Path, bool], Path]


@pytest.fixture
def project(tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without an active environment, of a user who keeps none elsewhere, and has no TensorFlow beside
    mpdoctor."""
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.setattr(sys, "executable", str(bare))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "WORKON_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("mpdoctor.interpreters.ENVIRONMENT_STORES", ("~/.pyenv/versions", "~/miniconda3/envs"))
    directory = tmp_path / "work" / "project" / "deep"
    directory.mkdir(parents=True)
    monkeypatch.chdir(directory)
    return directory


def chosen(project: Path, named: Path | None = None) -> Path:
    return interpreter_for(Target("train.py", "script", project / "train.py"), named)


def refused(project: Path, named: Path | None = None) -> str:
    with pytest.raises(NoInterpreter) as reason:
        chosen(project, named)
    return str(reason.value)


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def answering(path: Path, python: str, tensorflow: str) -> Path:
    return program(path, f"echo chatter; echo; echo 'Python={python} TensorFlow={tensorflow}'")


# --- what one answers -------------------------------------------------------------------------------------------
def test_an_interpreter_is_asked(bare: Path, claiming: Path) -> None:
    assert interpreter_from_path(bare) == Interpreter(bare, sys.version_info[:3], "")
    assert interpreter_from_path(claiming) == Interpreter(claiming, sys.version_info[:3], "?")
    assert interpreter_from_path(claiming).problem == ""


@NEEDS_A_SHELL
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exit 0", "does not answer as one"),
        ('printf "%s\\n" "$@"', "does not answer as one"),  # the question itself is no answer
        ("echo Python 3.11.7", "does not answer as one"),
        ("echo 'pyenv: no such command' >&2; echo 'Note: install it' >&2; exit 127", "says 'pyenv: no such command'"),
        ("kill -9 $$", "does not answer as one"),
    ],
)
def test_a_program_that_is_no_python_is_told(project: Path, text: str, said: str) -> None:
    python = program(project / "python", text)
    message = refused(project, python)
    assert message.startswith(f"{python} is no Python: ")
    assert said in message
    assert "--python PATH" in message


def test_what_is_no_program_is_told(project: Path) -> None:
    text = project / "text"
    text.write_text("no program")
    assert refused(project, project / "none").startswith(f"{project / 'none'} does not exist. ")
    for path in (text, project):
        assert refused(project, path).startswith(f"{path} is no Python: it does not answer as one")


@NEEDS_A_SHELL
@pytest.mark.parametrize(
    ("python", "tensorflow", "said"),
    [
        ("2.7.18", "-", "(Python 2.7.18) is too old: training is examined in Python 3.8 or later, with TensorFlow 2.4"),
        ("3.7.16", "-", "(Python 3.7.16) is too old"),
        ("3.8.18", "-", "(Python 3.8.18) has no TensorFlow. "),
        ("3.8.18", "2.3.4", "(Python 3.8.18) has TensorFlow 2.3.4, and 2.4 or later is examined. "),
        ("3.8.18", "1.15.5", "has TensorFlow 1.15.5"),
    ],
)
def test_what_is_too_old_is_told(project: Path, python: str, tensorflow: str, said: str) -> None:
    named = answering(project / "python", python, tensorflow)
    assert f"{named} " in refused(project, named)
    assert said in refused(project, named)


@NEEDS_A_SHELL
@pytest.mark.parametrize("tensorflow", ["2.4.0", "2.21.0", "2.10.0rc1", "?", "nightly"])
def test_what_is_new_enough_examines(project: Path, tensorflow: str) -> None:
    named = answering(project / "python", "3.8.2", tensorflow)
    assert chosen(project, named) == named


def test_a_folder_called_tensorflow_is_none(project: Path, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "tensorflow").mkdir()
    assert interpreter_from_path(bare).tensorflow == ""
    monkeypatch.setenv("PYTHONPATH", str(project))
    assert interpreter_from_path(bare).tensorflow == ""
    (project / "tensorflow" / "__init__.py").write_text("")
    monkeypatch.delenv("PYTHONPATH")
    assert interpreter_from_path(bare).tensorflow == ""


def test_the_question_can_be_asked_of_any_python() -> None:
    assert not set(QUESTION) & {"{", "}"}  # no f-string, which Python 2 could not read
    assert "print" not in QUESTION


# --- which one is chosen ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [".venv", "venv", "env"])
def test_the_nearest_environment_with_tensorflow_examines(project: Path, environment_of: Make, name: str) -> None:
    environment_of(project / name, False)
    nearest = environment_of(project.parent / name, True)
    environment_of(project.parent.parent / name, True)
    assert chosen(project) == nearest


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_comes_first(
    project: Path, environment_of: Make, claiming: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    environment_of(project / ".venv", True)
    monkeypatch.setenv(variable, str(claiming.parents[1]))
    assert chosen(project) == claiming


def test_where_none_has_tensorflow_all_that_were_asked_are_named(project: Path, environment_of: Make) -> None:
    (project / "venv").mkdir()  # no environment at all
    python = environment_of(project / ".venv", False)
    message = refused(project)
    assert message.startswith(f"{sys.executable} (Python {HERE}) has no TensorFlow; {python} (Python {HERE}) has no ")
    assert "mpdoctor[tensorflow]" in message
    assert "--python PATH" in message


# --- which others are suggested ---------------------------------------------------------------------------------
@NEEDS_A_SHELL
@pytest.mark.parametrize("place", ["../.venv", "env", "~/.pyenv/versions/tf", "~/miniconda3/envs/tf", "registered"])
def test_another_that_has_it_is_named(project: Path, place: str) -> None:
    named = answering(project / "named", "3.11.7", "-")
    environment = project / "a folder" if place == "registered" else Path(place).expanduser()
    if place == "registered":
        register = Path("~/.conda/environments.txt").expanduser()
        register.parent.mkdir(parents=True)
        register.write_text(f"/gone\n{environment}\n\n")
    python = answering(project / environment / "bin" / "python", "3.8.18", "2.4.4").resolve()
    answering(project / "venv" / "bin" / "python", "2.7.18", "-")
    message = refused(project, named)
    quoted = f"'{python}'" if " " in str(python) else str(python)
    assert message.startswith(f"{named} (Python 3.11.7) has no TensorFlow. Name one that has it: --python {quoted}. ")
    assert f"{python} (Python 3.8.18) with TensorFlow 2.4.4." in message


@NEEDS_A_SHELL
def test_the_one_that_runs_mpdoctor_is_suggested(
    project: Path, claiming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(claiming))
    named = answering(project / "python", "3.11.7", "-")
    assert f"Found near here: {claiming} (Python {HERE}) with TensorFlow." in refused(project, named)


@NEEDS_A_SHELL
def test_what_lies_outside_of_the_project_is_suggested_and_not_chosen(project: Path) -> None:
    python = answering(Path("~/.pyenv/versions/3.8.18/bin/python").expanduser(), "3.8.18", "2.4.4")
    assert f"--python {python}. " in refused(project)
