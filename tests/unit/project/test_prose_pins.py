"""Which Keras a project asks for in prose: the install commands of its README, and those that a notebook has commented
out."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from mpdoctor.project.keras_of_project import KerasOfFolders, keras_from_file, keras_from_project

INSTALLS_2_2 = "pip3 install --user tensorflow-gpu==2.2.0\n"


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {".git/HEAD": "", **files}.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (INSTALLS_2_2, "2.2.0"),
        ("$ python3 -m pip install -U tensorflow==2.6.0 'gym[atari]' git+https://x/y.git@a0#egg=y", "2.6.0"),
        ("Run `pip install tensorflow_gpu==2.3.1`, then `python train.py`.", "2.3.1"),
        ('pip install "tensorflow>=2.4, <2.11"', "2.10"),
        ("pip install 'tensorflow<2.9'", "2.8"),
        ("pip install tensorflow~=2.7.0", "2.7"),
        ("pip install -q \\\n    tensorflow==2.5.0 \\\n    numpy", "2.5.0"),
        ("conda create -n x python=3.7 tensorflow-gpu=2.4", "2.4"),
        ("conda install -c conda-forge conda-forge::tensorflow=2.9.1", "2.9"),
        ("uv pip install tensorflow==2.12.1", "2.12.1"),
        ("poetry add tensorflow==2.12.1", "2.12.1"),
        ("pip install keras==2.2.4", "2.2.4"),
        ("pip install tensorflow-gpu==1.8", "1.8"),
        ("pip install tensorflow-macos==2.9 # on a Mac\npip install tensorflow==2.10.1 # elsewhere", "2.10.1"),
        ("docker run --gpus all -it tensorflow/tensorflow:2.6.1-gpu bash", "2.6.1"),
        ("docker pull nvcr.io/nvidia/tensorflow:23.06-tf2-py3", "2.12"),
        ("<code>pip install tensorflow==2.3.0</code>", "2.3.0"),
        ("**pip install tensorflow==2.3.0**.", "2.3.0"),
    ],
)
def test_an_install_command_says_which(line: str, version: str, tmp_path: Path) -> None:
    found = keras_from_project(written(tmp_path, {"README.md": f"# Title\n\n{line}\n"}))
    assert found is not None and found.package == "tf.keras"
    assert found.version == version
    assert "README.md" in found.because


@pytest.mark.parametrize(
    "text",
    [
        "Written with TensorFlow 2.3. Needs tensorflow==2.3.0.",
        "| tensorflow==2.3.0 | works |\n| tensorflow==2.17.0 | works |",
        "pip install tensorflow",
        "pip install tensorflow>=2.3",
        "pip install tensorflow==2.3.0\npip install tensorflow",  # the one for old cards, say
        "pip install tensorflow==2.3.0\npip install tensorflow==2.17.0",
        "Install TensorFlow (`pip install tensorflow==2.3.0` or newer).",
        "Install TensorFlow, at least 2.3: `pip install tensorflow==2.3.0`.",
        "`pip install tensorflow==2.3.0`, and any later release.",
        "Do not `pip install tensorflow==2.3.0`.",
        "For the old release, `pip install tensorflow==2.3.0`.",
        "# pip install tensorflow==2.3.0",
        "pip install tensorflow==$RELEASE",
        "pip install intel-tensorflow==2.3.0 tensorflow-text==2.3.0",
        "## Changelog\n\n2020: `pip install tensorflow==2.3.0`",
        "## Troubleshooting\n\nOn such cards, `pip install tensorflow==2.3.0`.",
        "docker run tensorflow/tensorflow:latest-gpu",
    ],
)
def test_what_is_not_certain_says_nothing(text: str, tmp_path: Path) -> None:
    assert keras_from_project(written(tmp_path, {"README.md": text})) is None


@pytest.mark.parametrize(
    "name", ["README", "readme.MD", "README.rst", "README_en.txt", "INSTALL.md", "docs/installation.rst", "Install.txt"]
)
def test_in_which_pages(name: str, tmp_path: Path) -> None:
    assert keras_from_project(written(tmp_path, {name: INSTALLS_2_2})) is not None


@pytest.mark.parametrize("name", ["install.sh.bak", "readme.py", "CHANGELOG.md", "docs/usage.md"])
def test_in_which_not(name: str, tmp_path: Path) -> None:
    assert keras_from_project(written(tmp_path, {name: INSTALLS_2_2})) is None


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"requirements.txt": "tensorflow==2.9.0"}, "2.9.0"),
        ({"requirements.txt": "tensorflow"}, "2.2.0"),
        ({"requirements.txt": "tensorflow>=2.0"}, "2.2.0"),
        ({"requirements.txt": "tensorflow>=2.4"}, None),  # the page is older than the file
        ({"sub/requirements.txt": "tensorflow>=2.4"}, None),
        ({"sub/requirements.txt": "tensorflow==2.9.0"}, "2.9.0"),
        ({"Dockerfile": "FROM tensorflow/tensorflow:2.9.0"}, "2.9.0"),
        ({"setup.sh": "pip install tensorflow==2.9.0"}, "2.9.0"),
        ({"sub/README.md": "pip install tensorflow==2.7.0"}, "2.7.0"),
        ({"sub/README.md": "A library."}, "2.2.0"),
        ({"sub/README.md": "pip install tensorflow==2.7.0", "setup.py": "x(['tensorflow==2.9.0'])"}, "2.9.0"),
    ],
)
def test_whatever_a_program_reads_says_more(files: dict[str, str], version: str | None, tmp_path: Path) -> None:
    written(tmp_path, {"README.md": INSTALLS_2_2, "sub/train.py": "", **files})
    known = KerasOfFolders()
    found = [keras_from_file(tmp_path / "sub/train.py", known) for _ in range(2)]
    assert [keras and keras.version for keras in found] == [version] * 2


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"home/train.py": ""}, "2.2.0"),
        ({"home/projects/gan/train.py": ""}, None),  # nothing says that the page is about this folder
        ({"home/projects/gan/train.py": "", ".git/config": ""}, "2.2.0"),
        ({"home/projects/gan/train.py": "", "setup.py": ""}, "2.2.0"),
        ({"home/projects/gan/train.py": "", "home/projects/setup.py": ""}, None),
    ],
)
def test_a_page_far_above_says_nothing_of_a_folder(files: dict[str, str], version: str | None, tmp_path: Path) -> None:
    for name, text in {"README.md": INSTALLS_2_2, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = keras_from_file(next(tmp_path.rglob("train.py")))
    assert (found and found.version) == version


def test_a_script_beside_a_readme_is_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    (tmp_path / "setup.sh").write_text("if x; then\n  python3 -m pip install tensorflow==2.3.1\nfi\n")
    found = keras_from_project(tmp_path)
    assert found is not None and found.version == "2.3.1"


@pytest.mark.parametrize(
    ("cells", "files", "version"),
    [
        (['#!pip install "tensorflow==2.6.0"\n!pip install transformers'], {}, "2.6.0"),
        (["# %pip install tensorflow==2.6.0"], {}, "2.6.0"),
        (["# !pip install tensorflow==2.6.0\n!pip install tensorflow"], {}, None),
        (["# !pip install tensorflow==2.6.0\n# !pip install tensorflow==2.17.0"], {}, None),
        (["# !pip install tensorflow==2.6.0\n!pip install tensorflow==2.10.0"], {}, "2.10.0"),
        (["# !pip install tensorflow==2.6.0"], {"requirements.txt": "tensorflow==2.9.0"}, "2.9.0"),
        (["# !pip install tensorflow==2.6.0"], {"README.md": INSTALLS_2_2}, "2.6.0"),
        (["# pip install tensorflow==2.6.0 is what I had"], {}, None),
        (["print('!pip install tensorflow==2.6.0')"], {}, None),
    ],
)
def test_commented_commands_of_a_notebook_say_less(
    cells: list[str], files: dict[str, str], version: str | None, tmp_path: Path
) -> None:
    notebook = json.dumps({"cells": [{"cell_type": "code", "source": source} for source in cells]})
    written(tmp_path, {"a.ipynb": notebook, **files})
    found = keras_from_file(tmp_path / "a.ipynb")
    assert (found and found.version) == version


@pytest.mark.parametrize(
    "text",
    [
        "pip install " + "tensorflow==2.2 " * 50_000 + "\npip install tensorflow",
        "pip install " * 100_000 + "tensorflow",
        "docker run " * 100_000 + "tensorflow",
        "docker run " + "tensorflow" * 100_000,
        "pip install " + '"' * 200_000 + "tensorflow",
        "install tensorflow " + "or " * 200_000,
        "tensorflow pip install `\n" * 50_000,
    ],
)
def test_a_page_that_nobody_wrote_says_nothing_and_takes_no_time(text: str, tmp_path: Path) -> None:
    written(tmp_path, {"README.md": text})
    started = time.process_time()
    assert keras_from_project(tmp_path) is None
    assert time.process_time() - started < 5
