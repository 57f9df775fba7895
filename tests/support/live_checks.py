"""Runs the functions `check_…` of a script of this folder in one process of a Python and a Keras."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def checks_of(script: Path) -> list[str]:
    """Their names, without `check_`."""
    functions = ast.parse(script.read_text(encoding="utf-8")).body
    names = [node.name for node in functions if isinstance(node, ast.FunctionDef)]
    return [name[len("check_") :] for name in names if name.startswith("check_")]


def found_by(script: Path, python: str, keras: str, names: tuple[str, ...] = ()) -> dict[str, str]:
    """What each check found, "" for nothing: all in one process, which imports TensorFlow once."""
    done = subprocess.run(
        [python, str(script), *names],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return told
