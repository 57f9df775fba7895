"""`LossScaleMonitor(measure_every=n)` in every Keras: tests/support/live_measured_steps.py."""

from __future__ import annotations

import sys

import pytest
from checking import needs_keras
from environments import ENVIRONMENTS, Environment, needs_environment
from live_checks import ROOT, checks_of, found_by

SCRIPT = ROOT / "tests" / "support" / "live_measured_steps.py"
CHECKS = checks_of(SCRIPT)
SHORT = (
    "numbers_of_whatever_a_tensor_holds",
    "exponents_of_whatever_a_tensor_holds",
    "histograms_of_known_numbers",
    "layers_and_gradients_are_those_of_the_step",
    "underflow_is_seen_at_the_scale_in_force",
)
OLDER = [environment for environment in ENVIRONMENTS if environment.python is not None]
KERASES = [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")]


@needs_keras("3")
def test_steps_are_measured_in_keras_3() -> None:
    assert found_by(SCRIPT, sys.executable, "3", SHORT) == dict.fromkeys(SHORT, "")


@pytest.mark.slow
@pytest.mark.parametrize("keras", KERASES)
def test_steps_are_measured_and_train_the_same_in_the_newest_kerases(keras: str) -> None:
    assert found_by(SCRIPT, sys.executable, keras) == dict.fromkeys(CHECKS, "")


@pytest.mark.environments
@pytest.mark.parametrize(
    "environment", [pytest.param(older, marks=needs_environment(older), id=older.keras) for older in OLDER]
)
def test_steps_are_measured_and_train_the_same_in_older_kerases(environment: Environment) -> None:
    assert found_by(SCRIPT, str(environment.python), environment.keras) == dict.fromkeys(CHECKS, "")
