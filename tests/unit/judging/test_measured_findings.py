"""What is left of a finding in the source once a training of the program has been measured."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from samples import good_steps, model, training

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.reference import InnerGradientFacts
from mpdoctor.facts.remedies import FAILS_IN_FLOAT32, RemedyFacts
from mpdoctor.facts.training import OperationFacts, StepFacts
from mpdoctor.finding import AlsoSeen, Crashed, Edit, Finding, Fix, Severity
from mpdoctor.judging.measured_findings import in_light_of_runs
from mpdoctor.rules.registry import all_rules

pytestmark = pytest.mark.fast

LINE = Location("train.py", 26, 13)
FIX = Fix("Scale the inner gradient by 1024", False, (Edit(LINE, "1024"),))


def in_source(code: str) -> Finding:
    rule = next(rule for rule in all_rules() if rule.code == code)
    return Finding(
        "It is wrong.", "Mend it.", LINE, code=code, name=rule.name, severity=rule.severity, stage="source", fix=FIX
    )


def left(code: str, forced: str | None = None, **facts: Any) -> Finding:
    run = ExaminationFacts(trainings=(training(good_steps(), **facts),), forced_policy=forced)
    (found,) = in_light_of_runs([in_source(code)], [run])
    assert isinstance(found, Finding)
    return found


def gradient(flushed: int = 0, apart: float = 0.001, line: int = 26, numbers: int = 512) -> InnerGradientFacts:
    return InnerGradientFacts(Location("train.py", line), numbers, flushed, apart)


def mirrored(replicas: int, strategy: str = "MirroredStrategy") -> dict[str, Any]:
    return {"model": dataclasses.replace(model(), strategy=strategy, replicas=replicas), "replicas": replicas}


ADVICE = [
    pytest.param("MP413", {"inner_gradients": (gradient(),)}, "it is 0.10% from what float32 computes.", id="the same"),
    pytest.param("MP413", {"inner_gradients": (gradient(3),)}, "3 of its 512 numbers became zero", id="some zeros"),
    pytest.param("MP413", {"inner_gradients": (gradient(), gradient(99, line=7))}, "0.10%", id="lost on another line"),
    pytest.param("MP315", mirrored(1), "On this machine the strategy has one device", id="one device"),
]


@pytest.mark.parametrize(("code", "facts", "words"), ADVICE)
def test_what_a_training_has_not_met_is_advice(code: str, facts: dict[str, Any], words: str) -> None:
    found = left(code, **facts)
    assert found.severity is Severity.INFO
    assert words in found.message
    assert found.location == LINE


STAYS = [
    pytest.param("MP413", {}, id="not measured"),
    pytest.param("MP413", {"inner_gradients": (gradient(26),)}, id="zeros"),
    pytest.param("MP413", {"inner_gradients": (gradient(apart=0.06),)}, id="far from float32's"),
    pytest.param("MP413", {"inner_gradients": (gradient(numbers=0),)}, id="zero in float32 too"),
    pytest.param("MP413", {"inner_gradients": (gradient(), gradient(99))}, id="one of two calls"),
    pytest.param("MP413", {"inner_gradients": (gradient(line=7),)}, id="another line"),
    pytest.param("MP413", {"inner_gradients": (gradient(),), "forced": "float32"}, id="under a forced policy"),
    pytest.param("MP315", mirrored(2), id="two devices"),
    pytest.param("MP315", mirrored(1, ""), id="no strategy"),
    pytest.param("MP201", {"inner_gradients": (gradient(),)}, id="another rule"),
]


@pytest.mark.parametrize(("code", "facts"), STAYS)
def test_what_no_training_has_answered_stays(code: str, facts: dict[str, Any]) -> None:
    assert left(code, **facts) == in_source(code)


def broken_loss(line: int) -> dict[str, Any]:
    at = Location("train.py", line)
    broken = OperationFacts("Sum", "", "float16", "inf", 58.8, 0.1, location=at, in_float32=183767.0)
    return {"loss_culprit": broken}


def test_a_half_loss_that_breaks_by_itself_is_told_by_that() -> None:
    computed = AlsoSeen("MP408", "source", "The loss is computed here.", "train.py", 17)
    scaled = dataclasses.replace(in_source("MP408"), also_seen=(computed,))
    steps = (*good_steps(1), StepFacts(32768.0, False, None, math.inf))
    run = ExaminationFacts(trainings=(training(steps, **broken_loss(17)),))
    (found,) = in_light_of_runs([scaled], [run])
    assert isinstance(found, Finding)
    assert found.message == ("This loss is float16, and it is inf at step 2: summing numbers up to 58.8 gives 183,767.")
    assert found.help == scaled.help
    for other in (training(steps, **broken_loss(19)), training(good_steps(), **broken_loss(17))):
        assert list(in_light_of_runs([scaled], [ExaminationFacts(trainings=(other,))])) == [scaled]


def test_a_half_loss_that_breaks_in_float32_too_needs_more_than_that() -> None:
    computed = AlsoSeen("MP408", "source", "The loss is computed here.", "train.py", 17)
    scaled = dataclasses.replace(in_source("MP408"), also_seen=(computed,))
    log = OperationFacts("Log", "loss", "float16", "-inf", 1.0, 0.0, holds_zero=True, location=Location("train.py", 17))
    steps = (StepFacts(32768.0, False, None, math.nan),)
    tried = RemedyFacts("float32-layers", "failed", ("dense",), (None,), reason=FAILS_IN_FLOAT32)
    run = ExaminationFacts(trainings=(training(steps, loss_culprit=log, remedies=(tried,)),))
    (found,) = in_light_of_runs([scaled], [run])
    assert isinstance(found, Finding)
    assert found.help.endswith(
        "With all layers in float32 the step is not finite either (tried): keep it from 0 as well, with an epsilon "
        "that float16 holds, 1e-4, or `log_softmax` in the place of the logarithm of a softmax."
    )


def test_a_crash_and_a_check_without_a_run_pass() -> None:
    crash = Crashed("MP413", "in_source", "broken")
    assert list(in_light_of_runs([crash, in_source("MP413")], [])) == [crash, in_source("MP413")]
    run = ExaminationFacts(trainings=(training(good_steps(), inner_gradients=(gradient(),)),))
    assert next(iter(in_light_of_runs([crash], [run]))) is crash
