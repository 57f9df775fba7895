"""Runs mpdoctor with one of the two walls around a saved file taken down, to see what the other one holds by itself.

Nothing that a user can say takes one down. Here the examiner starts from this file, which replaces the functions that
build the wall; mpdoctor is told to start it so by `python tests/support/walls.py WALL check ARGUMENTS`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__)
ROOT = HERE.parents[2]
CONFINEMENT, ALLOW_LIST = WALLS = ("confinement", "allow-list")
DOWN = "MPDOCTOR_TESTS_WALL_DOWN"  # read here only: from the launcher of mpdoctor to that of the examiner
# What builds each wall: a module, its function, and what takes its place.
SEAMS: dict[str, list[tuple[str, str, Callable[..., Any]]]] = {
    CONFINEMENT: [("mpdoctor.examiner.process.confinement", "confine", lambda *given: "a test took it down")],
    ALLOW_LIST: [
        ("mpdoctor.examiner.targets.saved_model", "judge", lambda session, saved, objects: saved),
        ("mpdoctor.examiner.saved.refused_operations", "refuse_operations", lambda directory: None),
    ],
}


def take_down(wall: str) -> None:
    for module, name, replacement in SEAMS[wall]:
        imported = importlib.import_module(module)
        assert callable(getattr(imported, name)), f"{module}.{name} builds no wall any more"
        setattr(imported, name, replacement)


def check_without(wall: str, *arguments: str, directory: Path, **how: Any) -> Any:
    """As `checking.check`, with this wall down."""
    from checking import check

    return check(*arguments, directory=directory, launcher=(str(HERE), wall), **how)


def _run_mpdoctor(wall: str, arguments: list[str]) -> None:
    sys.path[0] = str(ROOT)
    os.environ[DOWN] = wall
    examiner_process = importlib.import_module("mpdoctor.examination.process")
    examiner_process.START = HERE
    sys.argv = ["mpdoctor", *arguments]
    importlib.import_module("mpdoctor.cli").main()


def _run_examiner(request: str) -> None:
    """As mpdoctor/examiner/start.py does, whose own functions these are."""
    sys.path.pop(0)
    path = ROOT / "mpdoctor" / "examiner" / "start.py"
    spec = importlib.util.spec_from_file_location("start", path)
    assert spec is not None and spec.loader is not None
    start = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(start)
    start._make_package_visible()
    imports = importlib.import_module("mpdoctor.examiner.own_imports").OwnImports(start.STARTED_WITH)
    imports.begin()
    take_down(os.environ.pop(DOWN))
    importlib.import_module("mpdoctor.examiner.main").main(request, imports)


if __name__ == "__main__":
    if sys.argv[1] in WALLS:
        _run_mpdoctor(sys.argv[1], sys.argv[2:])
    else:
        _run_examiner(sys.argv[1])
