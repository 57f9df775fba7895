"""`mpdoctor.training.LossScaleMonitor` in every Keras: tests/support/live_loss_scale_monitor.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checking import needs_keras
from environments import ENVIRONMENTS, Environment, needs_environment
from live_checks import ROOT, checks_of, found_by, run_of_example

SCRIPT = ROOT / "tests" / "support" / "live_loss_scale_monitor.py"
CHECKS = checks_of(SCRIPT)
SHORT = (
    "a_stuck_fit_names_layer_and_line_and_stops",
    "a_healthy_fit_is_silent",
    "a_weight_that_is_not_finite_is_named",
    "an_optimizer_that_is_given_nothing_is_in_no_trouble",
    "a_loop_is_watched_by_wrap",
    "a_warning_points_to_the_line_that_trains",
    "arguments_that_cannot_be_are_refused",
    "a_fit_that_was_interrupted_is_counted_to_its_end_and_no_further",
)
OLDER = [environment for environment in ENVIRONMENTS if environment.python is not None]
KERASES = [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")]


@needs_keras("3")
def test_it_does_so_in_keras_3() -> None:
    assert found_by(SCRIPT, sys.executable, "3", SHORT) == dict.fromkeys(SHORT, "")


@pytest.mark.slow
@pytest.mark.parametrize("keras", KERASES)
def test_it_does_so_in_the_newest_kerases(keras: str) -> None:
    assert found_by(SCRIPT, sys.executable, keras) == dict.fromkeys(CHECKS, "")


@pytest.mark.environments
@pytest.mark.parametrize(
    "environment", [pytest.param(older, marks=needs_environment(older), id=older.keras) for older in OLDER]
)
def test_it_does_so_in_older_kerases(environment: Environment) -> None:
    assert found_by(SCRIPT, str(environment.python), environment.keras, SHORT) == dict.fromkeys(SHORT, "")


@pytest.mark.slow
@pytest.mark.parametrize("keras", KERASES)
def test_the_run_of_its_page_is_shown(keras: str, tmp_path: Path) -> None:
    done = run_of_example("monitor.md", keras, tmp_path)
    assert "Nothing is trained:" in done.stderr, done.stderr[-2000:]
    shown = subprocess.run(
        [sys.executable, "-m", "mpdoctor", "show", "run.mpdoctor"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 1 and "wide" in shown.stdout, shown.stderr
