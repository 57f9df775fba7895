"""`mpdoctor.training.LossScaleOptimizer` in every Keras, beside Keras' own: tests/support/live_loss_scaling.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from checking import needs_keras
from environments import ENVIRONMENTS, Environment, needs_environment
from live_checks import ROOT, checks_of, found_by, run_of_example

SCRIPT = ROOT / "tests" / "support" / "live_loss_scaling.py"
CHECKS = checks_of(SCRIPT)
OLDER = [environment for environment in ENVIRONMENTS if environment.python is not None]
COMPARED = [name for name in CHECKS if name.startswith("same_as_own")]
# They train models, or have XLA compile.
LONG = (
    "same_as_own_under_xla",
    "keras_own_gets_wrong_what_is_said_of_it",
    "fit_trains",
    "checkpoint_resumes_bit_for_bit_and_between_wrappers",
    "saved_models_resume_bit_for_bit",
    "saved_models_load_into_keras_own_wrapper_and_from_it",
    "weights_files_hold_the_scale_where_keras_saves_optimizers_in_them",
)
SHORT = [name for name in CHECKS if name not in LONG]
# Sequences of a commit and of the slow tests: one takes 10 ms in a graph, 20 under XLA and on two replicas, and half a
# second eagerly.
ALWAYS = {"same_as_own_in_graphs": 200, "same_as_own_on_two_replicas": 10}
SLOWLY = {
    "same_as_own_eagerly": 50,
    "same_as_own_in_graphs": 1000,
    "same_as_own_under_xla": 500,
    "same_as_own_on_two_replicas": 500,
}
KERASES = [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")]
every_keras = pytest.mark.parametrize("keras", KERASES)


def counted(names: list[str], sequences: dict[str, int]) -> list[str]:
    """As the script is asked for so many sequences of each; of what is not said it runs what `--sequences` says."""
    return [f"{name}={sequences[name]}" if name in sequences else name for name in names]


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> str:
    """Of the random sequences: other ones with each commit."""
    return str(pytestconfig.option.sample_seed % 2**31)


@pytest.mark.sampled(1)
@every_keras
def test_it_does_so_in_the_newest_keras(keras: str, seed: str) -> None:
    """200 sequences in a graph, 10 on two replicas and 2 eagerly."""
    asked = counted(SHORT, ALWAYS)
    found = found_by(SCRIPT, sys.executable, keras, (*asked, "--sequences", "2", "--seed", seed))
    assert found == dict.fromkeys(SHORT, "")


@pytest.mark.slow
@every_keras
def test_it_trains_and_saves_in_the_newest_keras(keras: str, seed: str) -> None:
    found = found_by(SCRIPT, sys.executable, keras, (*LONG, "--sequences", "2", "--seed", seed))
    assert found == dict.fromkeys(LONG, "")


@pytest.mark.environments
@pytest.mark.parametrize(
    "environment", [pytest.param(older, marks=needs_environment(older), id=older.keras) for older in OLDER]
)
def test_it_does_so_in_older_kerases(environment: Environment, seed: str) -> None:
    found = found_by(SCRIPT, str(environment.python), environment.keras, ("--sequences", "10", "--seed", seed))
    assert found == dict.fromkeys(CHECKS, "")


@pytest.mark.slow
@every_keras
def test_scale_counter_and_weights_are_those_of_keras_own(keras: str, seed: str, pytestconfig: pytest.Config) -> None:
    """With --whole-tables 10,000 of each."""
    asked = COMPARED if pytestconfig.option.whole_tables else counted(COMPARED, SLOWLY)
    found = found_by(SCRIPT, sys.executable, keras, (*asked, "--sequences", "10000", "--seed", seed))
    assert found == dict.fromkeys(COMPARED, "")


@pytest.mark.slow
@every_keras
def test_the_example_of_its_page_runs(keras: str, tmp_path: Path) -> None:
    done = run_of_example("training.md", keras, tmp_path)
    assert done.stdout.splitlines()[-1:] == ["loss scale 32768.0"], done.stderr[-2000:]
