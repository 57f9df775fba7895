"""What several test files share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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
