"""In which folders files are looked for that pin a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpdoctor.project.declared_versions import may_hold_pins
from mpdoctor.project.keras_pins import keras_from_project

PINNED = {
    "uv.lock": '[[package]]\nname = "tensorflow"\nversion = "2.10.0"\n',
    "Pipfile.lock": '{"default": {"tensorflow": {"version": "==2.10.0"}}}',
    "Pipfile": '[packages]\ntensorflow = "==2.10.0"\n',
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["tensorflow==2.10.0"]\n',
    "setup.cfg": "[options]\ninstall_requires =\n    tensorflow==2.10.0\n",
    "setup.py": 'setup(install_requires=["tensorflow==2.10.0"])\n',
    "environment-gpu.yaml": "dependencies:\n  - tensorflow=2.10.0\n",
    "requirements-dev.txt": "tensorflow==2.10.0\n",
    "requirements/base.txt": "tensorflow==2.10.0\n",
    "Dockerfile.gpu": "FROM tensorflow/tensorflow:2.10.0-gpu\n",
    "docker/Dockerfile": "FROM tensorflow/tensorflow:2.10.0\n",
}


@pytest.mark.parametrize("name", PINNED)
def test_a_folder_with_such_a_file_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").touch()
    assert not may_hold_pins(tmp_path) and keras_from_project(tmp_path) is None
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(PINNED[name])
    found = keras_from_project(tmp_path)
    assert found is not None and found.package == "tf.keras" and found.version.startswith("2.10")


def test_what_cannot_be_listed_is_read(tmp_path: Path) -> None:
    assert may_hold_pins(tmp_path / "none")


def test_capitals_tell_nothing_apart(tmp_path: Path) -> None:
    """As on macOS and Windows."""
    (tmp_path / "SETUP.PY").touch()
    assert may_hold_pins(tmp_path)


@pytest.mark.parametrize(
    ("requirements", "package"),
    [
        ("tensorflow_addons==0.14.0", "tf.keras"),
        ("tensorflow-addons", "tf.keras"),
        ("tensorflow>=2.4\ntensorflow-addons>=0.16,<0.22", "tf.keras"),
        ("tensorflow>=2.16\ntensorflow-addons", "keras"),
        ("keras>=3\ntensorflow-addons", "keras"),
        ("tensorflow-datasets", None),
    ],
)
def test_tensorflow_addons_know_no_keras_3(requirements: str, package: str | None, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(requirements)
    (tmp_path / ".git").mkdir()
    found = keras_from_project(tmp_path)
    assert (found and found.package) == package
    assert package != "tf.keras" or (found is not None and "addons" in found.because)


def test_a_variable_that_doubles_itself_ends(tmp_path: Path) -> None:
    doubling = "ENV A=$A$A\n" * 60
    (tmp_path / "Dockerfile").write_text(
        f"ARG A=2.10.0\nFROM tensorflow/tensorflow:${{A}}-gpu\n{doubling}RUN echo $A\n"
    )
    found = keras_from_project(tmp_path)
    assert found is not None and found.version == "2.10.0"


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "Pipfile", "pyproject.toml", "Pipfile.lock"])
def test_a_number_that_python_does_not_read_says_nothing(name: str, tmp_path: Path) -> None:
    number = "9" * 5000
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(
        f'{{"tensorflow": {number}}}' if name == "Pipfile.lock" else f"tensorflow = {number}\n"
    )
    assert keras_from_project(tmp_path) is None
