"""Runs the functions `check_…` of a script of this folder, or the example of a page, in one process of a Python and a
Keras."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def checks_of(script: Path) -> list[str]:
    """Their names, without `check_`."""
    functions = ast.parse(script.read_text(encoding="utf-8")).body
    names = [node.name for node in functions if isinstance(node, ast.FunctionDef)]
    return [name[len("check_") :] for name in names if name.startswith("check_")]


def found_by(script: Path, python: str, keras: str, arguments: Sequence[str] = ()) -> dict[str, str]:
    """What each check found, "" for nothing: all in one process, which imports TensorFlow once. `arguments`: the names
    of checks, where not all are to be run, and what else the script takes."""
    done = subprocess.run(
        [python, str(script), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return told


def run_of_example(page: str, keras: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """The first example of a page of the documentation, run in a directory."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-c", text.partition("```python\n")[2].partition("```")[0]],
        env={**os.environ, "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
