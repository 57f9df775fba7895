"""A training that is ended and resumed, in every Keras: tests/support/live_resumed_training.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checking import needs_keras
from environments import ENVIRONMENTS, Environment, needs_environment

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "live_resumed_training.py"
OLDER = [environment for environment in ENVIRONMENTS if environment.python is not None]
# What no variables of the optimizer inside are saved in, whichever wrapper is around it (docs/training.md).
KERAS_SAVES_NONE = {("2.15", ".keras", "legacy"), ("tf_keras", ".keras", "legacy"), ("2.10", ".h5", "experimental")}


def not_resumed(python: str, keras: str) -> set[tuple[str, str, str]]:
    """(Keras, way, kind of optimizers) of each training that did not go on bit for bit."""
    done = subprocess.run(
        [python, str(SCRIPT)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    return {(keras, way, kind) for way, kinds in told.items() for kind, said in kinds.items() if said}


def expected(keras: str) -> set[tuple[str, str, str]]:
    return {case for case in KERAS_SAVES_NONE if case[0] == keras}


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")])
def test_a_training_is_resumed_in_the_newest_kerases(keras: str) -> None:
    assert not_resumed(sys.executable, keras) == expected(keras)


@pytest.mark.environments
@pytest.mark.parametrize(
    "environment", [pytest.param(older, marks=needs_environment(older), id=older.keras) for older in OLDER]
)
def test_a_training_is_resumed_in_older_kerases(environment: Environment) -> None:
    assert not_resumed(str(environment.python), environment.keras) == expected(environment.keras)
