"""Packages whose `__init__` adds directories to `__path__`: what is imported from those is followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_cache import cache_in, found_in
from test_project_imports import BUILD, DECLARED, POLICY, SCRIPT, TRAINING, told

from mpdoctor.source.package_paths import AddedDirectories, directories_added_by

HERE = "import os\nhere = os.path.dirname(__file__)\n"
ADDING = {
    "append": '__path__.append(os.path.join(os.path.dirname(__file__), "api"))',
    "absolute": '__path__.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "api"))',
    "extend": '__path__.extend([os.path.join(here, "api")])',
    "insert": '__path__.insert(0, os.path.join(here, "api"))',
    "insert last": '__path__.insert(len(__path__), here + "/api")',
    "+=": '__path__ += [f"{here}/api"]',
    "= behind": '__path__ = [*__path__, here + "/api"]',
    "= a sum": '__path__ = __path__ + [here + "/api"]',
    "= before": '__path__ = [os.path.join(here, "api")] + list(__path__)',
    "the first of the path": '__path__.append(os.path.join(__path__[0], "api"))',
    "a name": 'api = os.path.join(here, "api")\n__path__.append(api)',
    "pathlib": 'from pathlib import Path\n__path__.append(str(Path(__file__).resolve().parent / "api"))',
    "joinpath": 'from pathlib import Path\n__path__.append(str(Path(__file__).parent.joinpath("api")))',
    "names of functions": 'from os.path import dirname, join\n__path__.append(join(dirname(__file__), "api"))',
    "a condition": 'if os.path.isdir(here + "/api"):\n    __path__.append(here + "/api")',
    "try": 'try:\n    raise ImportError\nexcept ImportError:\n    __path__.append(here + "/api")',
    "extend_path besides": (
        "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n"
        '__path__.append(os.path.join(here, "api"))'
    ),
}
ADDING_NOTHING = {
    "what is not known": "__path__.append(os.environ['API'])",
    "outside of the project": '__path__.append("/etc")',
    "above the project": '__path__.append(os.path.join(here, "..", "..", "api"))',
    "in a function": 'def later():\n    __path__.append(here + "/api")',
    "a comment": '# __path__.append(here + "/api")',
    "another list": 'paths = []\npaths.append(here + "/api")',
    "bound anew": 'here = os.getcwd()\n__path__.append(here + "/api")',
    "nested without end": "__path__.append(" + "(here + " * 90 + "'api'" + ")" * 91,
    "doubled without end": "here = here + here\n" * 90 + "__path__.append(here)",
}


def project(directory: Path, init: str, more: dict[str, str] | None = None) -> Path:
    files = DECLARED | {
        "scripts/train.py": SCRIPT,
        "mine/__init__.py": HERE + init + "\n",
        "mine/api/__init__.py": "",
        "mine/api/models/__init__.py": "from mine.src.models import build as build\n",
        "mine/src/__init__.py": "",
        "mine/src/models.py": BUILD,
    }
    for name, text in (files | (more or {})).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


@pytest.mark.parametrize("alone", [True, False], ids=["the script", "the directory"])
@pytest.mark.parametrize("init", ADDING.values(), ids=ADDING)
def test_it_is_followed(tmp_path: Path, init: str, alone: bool) -> None:
    assert told(project(tmp_path, init), alone=alone) == [("models.py", "MP201")]


@pytest.mark.parametrize("alone", [True, False], ids=["the script", "the directory"])
@pytest.mark.parametrize("init", ADDING_NOTHING.values(), ids=ADDING_NOTHING)
def test_nothing_is_added(tmp_path: Path, init: str, alone: bool) -> None:
    assert told(project(tmp_path, init), alone=alone) == []


@pytest.mark.parametrize("alone", [True, False], ids=["the script", "the directory"])
@pytest.mark.parametrize(
    ("how", "first"), [("append(", "models.py"), ("insert(0, ", "built.py")], ids=["behind", "before"]
)
def test_python_looks_in_the_order_of_the_path(tmp_path: Path, how: str, first: str, alone: bool) -> None:
    """The package has a module of the same name in both directories."""
    more = {"mine/models.py": BUILD, "mine/api/models/__init__.py": "from mine.built import build as build\n"}
    directory = project(tmp_path, f'__path__.{how}here + "/api")', more | {"mine/built.py": BUILD})
    assert told(directory, alone=alone) == [(first, "MP201")]


@pytest.mark.parametrize("alone", [True, False], ids=["the script", "the directory"])
@pytest.mark.parametrize("name", ["keras_hub", "keras_cv", "keras_nlp", "keras_tuner"])
def test_the_layout_of_the_keras_team(tmp_path: Path, name: str, alone: bool) -> None:
    """`benchmarks/glue.py` of KerasHub imports the package; each import in `api` goes by the added directory again."""
    files = {
        "pyproject.toml": "",
        "benchmarks/train.py": POLICY + f"import {name}\n" + TRAINING.replace("build()", f"{name}.models.build()"),
        f"{name}/__init__.py": f'{HERE}__path__.append(os.path.join(here, "api"))\nfrom {name}.api import *\ndel os\n',
        f"{name}/api/__init__.py": f"from {name} import models as models\n",
        f"{name}/api/models/__init__.py": f"from {name}.src.models.dense import build as build\n",
        f"{name}/src/__init__.py": "",
        f"{name}/src/models/__init__.py": "",
        f"{name}/src/models/dense.py": BUILD,
    }
    for place, text in files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    assert told(tmp_path, alone=alone) == [("dense.py", "MP201")]


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    outside = project(tmp_path / "outside", "")
    inside = project(tmp_path / "inside", '__path__.append(os.path.join(here, "linked"))')
    (inside / "mine" / "linked").symlink_to(outside / "mine" / "api")
    assert told(inside, alone=True) == []


def test_what_was_remembered_ends_with_the_path(tmp_path: Path) -> None:
    """Each text stays as it was but that of the package's `__init__`."""
    directory = project(tmp_path / "project", "")
    files = {path: path.relative_to(directory).as_posix() for path in sorted(directory.rglob("*.py"))}
    for init, count in (("", 0), (ADDING["append"], 1), ("", 0), (ADDING["insert"], 1)):
        (directory / "mine" / "__init__.py").write_text(HERE + init + "\n")
        for _ in range(2):
            assert len(found_in(files, cache_in(tmp_path / "cache"))) == count
        assert len(found_in(files, None)) == count


@pytest.mark.parametrize(
    "text", [b"__path__.append(", b"__path__ = '\\x00", b"# coding: none\n__path__ = []", b"\xff__path__"]
)
def test_what_is_no_python_adds_nothing(text: bytes) -> None:
    assert directories_added_by(text, Path("mine") / "__init__.py") == AddedDirectories()


def test_where_the_directories_stand() -> None:
    text = '__path__ = ["a", __file__, *__path__, __path__[0] + "/b"]\n__path__.insert(0, __path__[0] + "/c/../d")\n'
    init = Path("mine").absolute() / "__init__.py"
    found = directories_added_by(text.encode(), init)
    assert found == AddedDirectories((init.parent / "d", init), (init.parent / "b",))
