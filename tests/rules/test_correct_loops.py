"""The loops that `mpdoctor explain loop` shows: read by every rule, and run in each Keras, where the size of an update
does not depend on the loss scale. What loops do besides stands in them alone and together."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import pytest
from environments import ENVIRONMENTS, Environment, needs_environment
from judging import facts_of, findings_in

from mpdoctor.finding import Severity
from mpdoctor.knowledge.correct_loops import FEATURES, correct_loop

TOGETHER = [
    features
    for count in range(len(FEATURES) + 1)
    for features in itertools.combinations(FEATURES, count)
    if not {"xla", "replicas"} <= set(features)
]
ALONE = [features for features in TOGETHER if len(features) < 2]
MOST = max((features for features in TOGETHER if "replicas" not in features), key=len)


def text_for(keras: str, features: tuple[str, ...]) -> str:
    return correct_loop("3" if keras == "3" else "2", features, "tf_keras" if keras == "tf_keras" else "")


def assert_right(environment: Environment, features: tuple[str, ...], folder: Path) -> None:
    """Healthy, without a finding that matters, and with updates that do not depend on the scale."""
    (folder / "loop.py").write_text(text_for(environment.keras, features), encoding="utf-8")
    done = environment.check("loop.py", "--steps", "12", directory=folder)
    report = done.report
    assert not [finding for finding in report["findings"] if finding["severity"] != "info"], done
    probes = report["probes"]
    assert len(probes) == (2 if "gan" in features else 1), done
    for probe in probes:
        assert probe["verdict"] in ("healthy", "settling"), done
        measured = probe["gradients"]["scale_dependence"]
        if environment.keras == "3" and "replicas" in features:
            assert measured is None and probe["loss_scale"][0] is None  # bfloat16
        elif measured is None:  # of two models whose sums are applied one behind the other, the second
            assert {"accumulate", "gan"} <= set(features) and probe is not probes[0]
            assert "MP912" in [skipped["code"] for skipped in report["skipped"]], done
        else:
            assert round(statistics.median(exponent for _, exponent in measured["exponents"]), 1) == 0, done


@pytest.mark.fast
@pytest.mark.parametrize("features", TOGETHER, ids="+".join)
def test_no_rule_has_a_word_against_them(features: tuple[str, ...]) -> None:
    for keras in ("3", "tf_keras", "2.15", "2.10"):
        found = findings_in(facts_of(text_for(keras, features), keras))
        assert not [finding for finding in found if finding.severity is not Severity.INFO], keras


@pytest.mark.slow
@pytest.mark.sampled(8)
@pytest.mark.parametrize("features", [*ALONE, MOST, *TOGETHER[len(ALONE) :]], ids="+".join)
@pytest.mark.parametrize("environment", ENVIRONMENTS[-2:], ids=lambda environment: environment.keras)
def test_they_train(environment: Environment, features: tuple[str, ...], tmp_path: Path) -> None:
    assert_right(environment, features, tmp_path)


@pytest.mark.environments
@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("environment", "features"),
    [
        pytest.param(environment, features, marks=needs_environment(environment), id=f"{environment.keras}-{features}")
        for environment in ENVIRONMENTS[:-2]
        for features in TOGETHER
        # XLA in TensorFlow 2.4 compiles neither a clock nor an assertion, of which the examination adds both to a step
        if (environment.keras, "xla" in features) != ("2.4", True)
    ],
)
def test_they_train_in_older_tensorflows(environment: Environment, features: tuple[str, ...], tmp_path: Path) -> None:
    assert_right(environment, features, tmp_path)


def test_what_is_no_loop_is_refused() -> None:
    with pytest.raises(ValueError, match="no such features of a loop: clap"):
        correct_loop("3", ["clap"])
    with pytest.raises(ValueError, match="several replicas"):
        correct_loop("2", ["xla", "replicas"])
