"""What several test files share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checking import keras_is_missing

SAVED_MODELS = Path(__file__).parent / "saved_models.py"


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A directory of `.keras` files as this Keras writes them, made when it is first asked for."""
    made: dict[str, Path] = {}

    def directory_of(keras: str) -> Path:
        reason = keras_is_missing(keras)
        if reason:
            pytest.skip(reason)
        if keras not in made:
            made[keras] = tmp_path_factory.mktemp(f"saved_{keras}")
            environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"}
            subprocess.run([sys.executable, SAVED_MODELS, made[keras]], env=environment, check=True)
        return made[keras]

    return directory_of


@pytest.fixture(scope="session")
def environment_of() -> Callable[[Path, bool], Path]:
    """Makes a virtual environment in a folder, with or without a package called tensorflow; gives its interpreter."""

    def make(folder: Path, claims: bool) -> Path:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        if claims:
            (packages,) = folder.glob("lib/python*/site-packages")
            (packages / "tensorflow").mkdir()
            (packages / "tensorflow" / "__init__.py").write_text("raise ImportError('nobody is to import this')\n")
        return folder / "bin" / "python"

    return make


@pytest.fixture(scope="session")
def claiming(environment_of: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_of(tmp_path_factory.mktemp("claiming") / "env", True)


@pytest.fixture(scope="session")
def bare(environment_of: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_of(tmp_path_factory.mktemp("bare") / "env", False)
