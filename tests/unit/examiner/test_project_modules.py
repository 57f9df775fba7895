"""Files of packages: which scripts are run as modules, and where a module lies that a script cannot import."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mpdoctor.examiner.failures.missing_modules import folder_of_missing_module
from mpdoctor.examiner.targets.package_modules import package_module

RELATIVE = "from .models import make_model\n"
PACKAGE = ("shop/__init__.py", "shop/models.py", "shop/vision/__init__.py")
TABLE = {
    "a package": (PACKAGE, "shop/train.py", RELATIVE, "shop.train"),
    "inside a package": (PACKAGE, "shop/vision/train.py", "from . import models", "shop.vision.train"),
    "two levels": (PACKAGE, "shop/vision/train.py", "from ..models import make_model", "shop.vision.train"),
    "no __init__": (("shop/models.py",), "shop/train.py", RELATIVE, "shop.train"),
    "two levels without an __init__": ((), "shop/vision/train.py", "from .. import models", "shop.vision.train"),
    "__main__": (PACKAGE, "shop/__main__.py", RELATIVE, "shop.__main__"),
    "below the question for __main__": (
        PACKAGE, "shop/train.py", f"if __name__ == '__main__':\n    {RELATIVE}", "shop.train",
    ),
    "nothing relative": (PACKAGE, "shop/train.py", "from models import make_model", None),
    "with another way": (PACKAGE, "shop/train.py", f"try:\n    {RELATIVE}except ImportError:\n    pass", None),
    "in a function": (PACKAGE, "shop/train.py", f"def export():\n    {RELATIVE}", None),
    "for the type checker": (PACKAGE, "shop/train.py", f"if TYPE_CHECKING:\n    {RELATIVE}", None),
    "that names its package": (PACKAGE, "shop/train.py", f"__package__ = 'shop'\n{RELATIVE}", None),
    "in a folder that is no package": ((), "my-shop/train.py", RELATIVE, None),
}  # fmt: skip


def lay_out(folder: Path, files: tuple[str, ...]) -> None:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("", encoding="utf-8")


@pytest.mark.fast
@pytest.mark.parametrize(("files", "script", "text", "name"), TABLE.values(), ids=TABLE)
def test_a_script_that_only_runs_in_its_package(
    files: tuple[str, ...], script: str, text: str, name: str | None, tmp_path: Path
) -> None:
    lay_out(tmp_path, (*files, script))
    found = package_module(str(tmp_path / script), ast.parse(text))
    assert found == (None if name is None else (str(tmp_path), name))


@pytest.mark.fast
@pytest.mark.parametrize(
    ("files", "importer", "name", "folder"),
    [
        (PACKAGE, "scripts/train.py", "shop.models", ""),
        (PACKAGE, "shop/vision/train.py", "shop", ""),
        (("src/shop/models.py",), "scripts/train.py", "shop.models", "src"),
        (("src/shop.py",), "train.py", "shop", "src"),
        (PACKAGE, "scripts/train.py", "cv2", None),
        (("shop/readme.txt",), "scripts/train.py", "shop", None),
        (("shop/models.py", "scripts/setup.py"), "scripts/train.py", "shop", None),  # another project
    ],
)
def test_where_a_missing_module_lies(
    files: tuple[str, ...], importer: str, name: str, folder: str | None, tmp_path: Path
) -> None:
    lay_out(tmp_path, (*files, importer, "pyproject.toml"))
    error = ModuleNotFoundError(f"No module named {name!r}", name=name)
    found = folder_of_missing_module(error, str(tmp_path / importer))
    assert found == ("" if folder is None else str(tmp_path / folder).rstrip("/"))
