"""What is left of a finding in the source once a training of the program has been measured."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from samples import good_steps, model, training

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.reference import InnerGradientFacts
from mpdoctor.finding import Crashed, Edit, Finding, Fix, Severity
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


def test_a_crash_and_a_check_without_a_run_pass() -> None:
    crash = Crashed("MP413", "in_source", "broken")
    assert list(in_light_of_runs([crash, in_source("MP413")], [])) == [crash, in_source("MP413")]
    run = ExaminationFacts(trainings=(training(good_steps(), inner_gradients=(gradient(),)),))
    assert next(iter(in_light_of_runs([crash], [run]))) is crash
