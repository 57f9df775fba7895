"""MP906 and MP908 on trainings that lose numbers in 16 bits, and silence on healthy ones and in bfloat16."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import check, needs_keras
from lost_precision import DEAD_BRANCH, HARDLY_A_DIGIT, LOSSY, PARTING, UNDERFLOWING, healthy, script
from test_mended_programs import mend

BOTH = [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")]
SEEDS = range(30)
ABOUT_PRECISION = {"MP512", "MP906", "MP908"}
pytestmark = [pytest.mark.slow]


def codes(folder: Path, text: str, keras: str) -> set[str]:
    """Of findings, and of what they explain."""
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    done = check(path.name, "--reference", "--budget", "60", directory=folder, keras=keras)
    (probe,) = done.report["probes"]
    assert probe["steps"] == 50
    assert probe["reference"]["divergence"]["not_measured"] is None
    findings = done.report["findings"]
    return {finding["code"] for finding in findings} | {also["code"] for f in findings for also in f["also_seen"]}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", BOTH)
@pytest.mark.parametrize("name", UNDERFLOWING)
def test_gradients_that_underflow_are_told(name: str, keras: str, tmp_path: Path) -> None:
    assert "MP906" in codes(tmp_path, script(UNDERFLOWING[name]), keras)


@pytest.mark.parametrize("keras", BOTH[:1])
def test_gradients_that_lose_their_digits_are_told_and_mended(keras: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script(HARDLY_A_DIGIT), encoding="utf-8")
    done = mend("train.py", "--reference", "--output-format", "json", directory=tmp_path, keras=keras)
    (told,) = [finding for finding in done.report["before"]["findings"] if finding["severity"] == "warning"]
    assert told["code"] == "MP906" and not told["evidence"]["flushed"] and max(told["evidence"]["cosines"]) < 0.95
    assert done.report["mended"] and len(done.report["edits"]) == 1 and not done.report["after"]["findings"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", BOTH)
@pytest.mark.parametrize("name", [name for name in UNDERFLOWING if "loop" not in name])
def test_weights_that_no_step_moves_are_looked_at_unasked(name: str, keras: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script(UNDERFLOWING[name]), encoding="utf-8")
    report = check("train.py", directory=tmp_path, keras=keras).report
    assert [finding["code"] for finding in report["findings"] if finding["severity"] == "warning"] == ["MP906"]
    (step,) = report["probes"][0]["reference"]["steps"]
    assert step["step"] == 49 and report["probes"][0]["reference"]["divergence"] is None


@pytest.mark.parametrize("keras", BOTH)
def test_weights_without_a_gradient_may_stand_still(keras: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script(DEAD_BRANCH), encoding="utf-8")
    report = check("train.py", directory=tmp_path, keras=keras).report
    assert report["summary"]["exit_code"] == 0 and report["probes"][0]["reference"] is None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", BOTH)
@pytest.mark.parametrize("name", PARTING)
def test_a_loss_that_leaves_that_of_float32_is_told(name: str, keras: str, tmp_path: Path) -> None:
    assert "MP908" in codes(tmp_path, script(PARTING[name]), keras)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", BOTH)
@pytest.mark.parametrize("name", [*PARTING, *(name for name in UNDERFLOWING if "loop" not in name)])
def test_what_is_told_is_mended(name: str, keras: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script({**PARTING, **UNDERFLOWING}[name]), encoding="utf-8")
    done = mend("train.py", "--reference", "--output-format", "json", directory=tmp_path, keras=keras)
    assert done.report["mended"] and len(done.report["edits"]) == LOSSY.get(name, 1), done.report["edits"]
    assert done.exit_code == 0 and not done.report["after"]["findings"]
    told = [f for f in done.report["before"]["findings"] if f["severity"] == "warning"]
    assert {f["code"] for f in told} <= ABOUT_PRECISION and told


@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", BOTH)
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_trainings_are_not_blamed(seed: int, policy: str, keras: str, tmp_path: Path) -> None:
    assert not codes(tmp_path, script(healthy(seed), policy, seed), keras) & ABOUT_PRECISION
