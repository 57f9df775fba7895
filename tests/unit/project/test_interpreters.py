"""Which interpreter examines, what is said of those that cannot, and which others are named instead.

None of it needs TensorFlow: an interpreter that only claims to have it answers as one that has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from mpdoctor.facts.saved.file import SAVED
from mpdoctor.project.interpreters import (
    QUESTION,
    Interpreter,
    NoInterpreter,
    choice_for,
    interpreter_for,
    interpreter_from_path,
)
from mpdoctor.project.python_environments import versions_from_files
from mpdoctor.project.targets import Target

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
    stores = ("~/.pyenv/versions", "~/miniconda3/envs")
    monkeypatch.setattr("mpdoctor.project.python_environments.ENVIRONMENT_STORES", stores)
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
        ("exit 0", "does not answer like one"),
        ('printf "%s\\n" "$@"', "does not answer like one"),  # the question itself is no answer
        ("echo Python 3.11.7", "does not answer like one"),
        ("echo 'pyenv: no such command' >&2; echo 'Note: install it' >&2; exit 127", "says 'pyenv: no such command'"),
        ("kill -9 $$", "does not answer like one"),
    ],
)
def test_a_program_that_is_no_python_is_told(project: Path, text: str, said: str) -> None:
    python = program(project / "python", text)
    message = refused(project, python)
    assert message.startswith(f"{python} is not a Python: ")
    assert said in message
    assert "--python PATH" in message


@NEEDS_A_SHELL
def test_a_program_that_repeats_the_question_is_not_quoted(project: Path) -> None:
    """As `ls` does: it names its arguments in its error."""
    python = program(project / "python", """echo "ls: cannot access '$2'" >&2; exit 2""")
    assert refused(project, python).startswith(f"{python} is not a Python: it does not answer like one. ")


def test_a_python_option_that_names_no_python_is_refused(project: Path) -> None:
    text = project / "text"
    text.write_text("no program")
    assert refused(project, project / "none").startswith(f"{project / 'none'} does not exist. ")
    for path in (text, project):
        assert refused(project, path).startswith(f"{path} is not a Python: it does not answer like one")


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
RUN = "ran"  # in a folder whose program was run


def environment(folder: Path, tensorflow: str = "2.4.4", python: str = "3.8.18") -> Path:
    """A virtual environment as its files tell it, whose program leaves a mark when it is run."""
    interpreter = answering(folder / "bin" / "python", python, tensorflow or "-")
    program(interpreter, f"touch '{folder / RUN}'; " + interpreter.read_text().partition("\n")[2])
    (folder / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {python}\n")
    packages = folder / "lib" / f"python{python.rpartition('.')[0]}" / "site-packages"
    packages.mkdir(parents=True)
    for name in filter(None, (tensorflow and f"tensorflow_cpu-{tensorflow}", "tensorflow_io-0.1", "keras-2.4.3")):
        (packages / f"{name}.dist-info").mkdir()
    return interpreter


def ran(*interpreters: Path) -> list[bool]:
    return [(interpreter.parents[1] / RUN).exists() for interpreter in interpreters]


@NEEDS_A_SHELL
@pytest.mark.parametrize("marker", ["pyproject.toml", "setup.cfg", "setup.py", ".git"])
@pytest.mark.parametrize("name", [".venv", "venv", "env"])
def test_the_nearest_environment_of_the_project_that_has_tensorflow_examines(
    project: Path, name: str, marker: str
) -> None:
    nearest = environment(project / name, "")
    of_project = environment(project.parent / name)
    above = environment(project.parent.parent / name)
    (project.parent / marker).touch()
    (project.parent.parent / "pyproject.toml").touch()
    assert chosen(project) == of_project
    assert ran(nearest, of_project, above) == [True, True, False]


@NEEDS_A_SHELL
def test_above_the_project_and_without_one_none_is_run_but_suggested(project: Path) -> None:
    """Anybody may have put it there."""
    above = environment(project.parent / ".venv")
    assert f"--python {above}. " in refused(project)
    (project / "pyproject.toml").touch()
    assert f"--python {above}. " in refused(project)
    (project / "pyproject.toml").unlink()
    beside = environment(project / ".venv")
    assert f"--python {beside}. " in refused(project)
    assert ran(above, beside) == [False, False]


@NEEDS_A_SHELL
@pytest.mark.parametrize("kind", SAVED)
def test_a_saved_file_is_loaded_by_no_environment_that_nobody_named(
    project: Path, claiming: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Not by that of the project that it lies in: it may have come with it. The active one was named."""
    (project / "pyproject.toml").touch()
    beside = environment(project / ".venv")
    target = Target("model", kind, project / "model")
    with pytest.raises(NoInterpreter, match=f"--python {beside}. "):
        interpreter_for(target, None)
    assert ran(beside) == [False]
    assert interpreter_for(target, beside) == beside
    monkeypatch.setenv("VIRTUAL_ENV", str(claiming.parents[1]))
    assert interpreter_for(target, None) == claiming


@NEEDS_A_SHELL
@pytest.mark.parametrize("part", [".", "bin", "bin/python", "pyvenv.cfg", "lib"])
@pytest.mark.parametrize("how", ["owner", "mode"])
def test_what_others_may_have_put_there_is_neither_run_nor_suggested(project: Path, part: str, how: str) -> None:
    (project / "pyproject.toml").touch()
    python = environment(project / ".venv")
    spoiled = project / ".venv" / part
    if how == "mode":
        spoiled.chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(spoiled, 12345, -1)
    else:
        pytest.skip("only root gives files away")
    message = refused(project)
    assert f"{python} is not run: {project / '.venv' / part} belongs to another user, or others can" in message
    assert f"--python {python}" not in message and "--python PATH" in message
    assert ran(python) == [False]
    assert chosen(project, python) == python  # the user's own word


@NEEDS_A_SHELL
def test_a_folder_that_is_no_environment_is_not_run(project: Path) -> None:
    (project / "pyproject.toml").touch()
    python = environment(project / "env")
    (project / "env" / "pyvenv.cfg").unlink()
    refused(project)
    assert ran(python) == [False]
    (project / "env" / "conda-meta").mkdir()
    assert chosen(project) == python


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_comes_first(
    project: Path, environment_of: Make, claiming: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (project / "pyproject.toml").touch()
    environment_of(project / ".venv", True)
    monkeypatch.setenv(variable, str(claiming.parents[1]))
    assert chosen(project) == claiming


def test_a_real_environment_of_the_project_examines(project: Path, environment_of: Make) -> None:
    (project / "setup.py").touch()
    python = environment_of(project / ".venv", True)
    choice = choice_for(Target("train.py", "script", project / "train.py"), None)
    assert (choice.path, choice.because) == (python, "the project's own environment")


def test_where_none_has_tensorflow_all_that_were_asked_are_named(project: Path, environment_of: Make) -> None:
    (project / "pyproject.toml").touch()
    (project / "venv").mkdir()  # no environment at all
    python = environment_of(project / ".venv", False)
    message = refused(project)
    assert message.startswith(f"{sys.executable} (Python {HERE}) has no TensorFlow; {python} (Python {HERE}) has no ")
    assert "mpdoctor[tensorflow]" in message
    assert "--python PATH" in message


@pytest.mark.parametrize("has_tensorflow", [False, True])
def test_a_python_that_does_not_know_its_own_path_is_told_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, has_tensorflow: bool
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    if has_tensorflow:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: ModuleSpec(name, None, origin="here"))
    message = refused(project)
    assert message.startswith(f"the Python {HERE} that runs mpdoctor does not know where it lies: it can't be started ")
    assert "--python PATH" in message and "mpdoctor[tensorflow]" not in message


# --- which others are suggested ---------------------------------------------------------------------------------
@NEEDS_A_SHELL
@pytest.mark.parametrize("place", ["../.venv", "env", "~/.pyenv/versions/tf", "~/miniconda3/envs/tf", "registered"])
def test_another_that_has_it_is_named_and_not_run(project: Path, place: str) -> None:
    named = answering(project / "named", "3.11.7", "-")
    folder = project / "a folder" if place == "registered" else (project / Path(place).expanduser()).resolve()
    if place == "registered":
        register = Path("~/.conda/environments.txt").expanduser()
        register.parent.mkdir(parents=True)
        register.write_text(f"/gone\n{folder}\n\n")
    python = environment(folder)
    others = [environment(project / "venv", "", "2.7.18"), environment(project / ".venv", "2.3.1")]
    message = refused(project, named)
    quoted = f"'{python}'" if " " in str(python) else str(python)
    assert message.startswith(f"{named} (Python 3.11.7) has no TensorFlow. Name one that has it: --python {quoted}. ")
    assert message.endswith(f" {python} (Python 3.8.18) with TensorFlow 2.4.4.")
    assert not any(ran(python, *others))


@pytest.mark.parametrize(
    ("files", "python", "tensorflow"),
    [
        ({"pyvenv.cfg": "version_info = 3.9.1.final.0", "lib/python3.9/site-packages/tensorflow-2.8.0.dist-info/X": ""},
         (3, 9, 1), "2.8.0"),
        ({"lib/python3.10/site-packages/tf_nightly-2.21.0.dev1.dist-info/X": ""}, (3, 10), "2.21.0.dev1"),
        ({"conda-meta/python-3.8.18-h9.json": "", "lib/python3.8/site-packages/tensorflow-2.4.1-py3.8.egg-info/X": ""},
         (3, 8, 18), "2.4.1"),
        ({"pyvenv.cfg": "version = 3.12.1", "lib/python3.12/site-packages/tensorflow/__init__.py": ""},
         (3, 12, 1), "?"),
        ({"pyvenv.cfg": "version = 3.12.1", "lib/python3.12/site-packages/tensorflow/x": ""}, (3, 12, 1), ""),
        ({"pyvenv.cfg": "version = \x1b[31m", "lib/python3.12/site-packages/x": ""}, (3, 12), ""),
        ({"pyvenv.cfg": "version = " + "9" * 5000}, None, ""),
        ({}, None, ""),
    ],
)  # fmt: skip
def test_what_an_environment_s_files_tell(
    tmp_path: Path, files: dict[str, str], python: tuple[int, ...] | None, tensorflow: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert versions_from_files(tmp_path) == (python, tensorflow)


@NEEDS_A_SHELL
def test_the_one_that_runs_mpdoctor_is_suggested(
    project: Path, claiming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(claiming))
    named = answering(project / "python", "3.11.7", "-")
    assert f"Found near here: {claiming} (Python {HERE}) with TensorFlow." in refused(project, named)


def test_without_a_home_nothing_is_looked_for_there(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert "--python PATH" in refused(project)
