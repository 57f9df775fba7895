"""The environments that scripts are examined in: older TensorFlows and a newer Python, made by .ci/environments in a
cache outside of the checkout, and both Kerases of the TensorFlow beside the tests."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from checking import Check, check, keras_is_missing

REQUIREMENTS = Path(__file__).parents[2] / ".ci" / "requirements"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "mpdoctor-ci"


@dataclass(frozen=True)
class Environment:
    """`keras` is the name that marks know it by; `python` examines, None for the one that runs the tests; `label` is
    needed where another environment has the same Keras."""

    keras: str
    python: Path | None = None
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.keras

    @property
    def missing(self) -> str:
        """Why nothing can be run in it here; "" where it can."""
        if self.python is None:
            return keras_is_missing(self.keras)
        if (self.python.parents[1] / "complete").exists():
            return ""
        return f"there is no TensorFlow {self.keras} at {self.python.parents[1]}: run .ci/environments"

    def check(self, *arguments: str, directory: Path) -> Check:
        if self.python is None:
            return check(*arguments, directory=directory, keras=self.keras)
        return check("--python", str(self.python), *arguments, directory=directory)


def python_of(tensorflow: str, python: str) -> Path:
    """What .ci/environments made of requirements/tf2.4-python3.8.txt."""
    name = f"tf{tensorflow}-python{python}"
    key = hashlib.sha256((REQUIREMENTS / f"{name}.txt").read_bytes()).hexdigest()[:12]
    return CACHE / f"{name}-{key}" / "bin" / "python"


ENVIRONMENTS = (
    Environment("2.4", python_of("2.4", "3.8")),
    Environment("2.10", python_of("2.10", "3.10")),
    Environment("2.15", python_of("2.15", "3.11")),
    Environment("tf_keras"),
    Environment("3"),
)
NEWER_PYTHON = Environment("3", python_of("2.21", "3.13"), "3, Python 3.13")


def needs_environment(environment: Environment) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(environment.missing), reason=environment.missing)
