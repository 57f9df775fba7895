"""Which short training counts as that of a mended program."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mpdoctor.facts.training import StepFacts
from mpdoctor.finding import Diagnosis, Finding, Probe, Severity, Verdict
from mpdoctor.mending.health import is_better, is_healthy

pytestmark = pytest.mark.fast

APPLIED, SKIPPED = StepFacts(32768.0, True, loss=0.5), StepFacts(32768.0, False, loss=0.5)


@pytest.mark.parametrize(
    ("verdict", "steps", "healthy"),
    [
        (Verdict.HEALTHY, [APPLIED], True),
        (Verdict.SETTLING, [SKIPPED, APPLIED], True),
        (Verdict.OVERFLOWING, [APPLIED], False),
        (Verdict.INCONCLUSIVE, [SKIPPED, APPLIED], True),  # a script that is as short as that
        (Verdict.INCONCLUSIVE, [SKIPPED, SKIPPED], False),
        (Verdict.INCONCLUSIVE, [StepFacts(None, True, loss=float("inf"))], False),
        (Verdict.INCONCLUSIVE, [], False),
    ],
)
def test_a_short_training_is_sound(verdict: Verdict, steps: list[StepFacts], healthy: bool) -> None:
    assert is_healthy(seen(verdict, steps)) is healthy


def seen(verdict: Verdict, steps: list[StepFacts], *findings: Finding) -> Diagnosis:
    training: Any = SimpleNamespace(steps=tuple(steps), prediction=None)
    return Diagnosis((), findings, (), (Probe(training, verdict, ""),), (), (), (), {}, 0, 0, "", "")


@pytest.mark.parametrize(
    ("verdict", "steps", "better"),
    [
        (Verdict.HEALTHY, [APPLIED], True),
        (Verdict.INCONCLUSIVE, [APPLIED], True),  # 16 bits may take longer, and the budget is the same
        (Verdict.INCONCLUSIVE, [APPLIED, SKIPPED], False),
        (Verdict.OVERFLOWING, [APPLIED], False),
    ],
)
def test_a_defect_less_is_better_though_the_training_was_too_short_for_a_verdict(
    verdict: Verdict, steps: list[StepFacts], better: bool
) -> None:
    before = seen(Verdict.HEALTHY, [APPLIED], Finding("", "", code="MP113", severity=Severity.WARNING))
    assert is_better(seen(verdict, steps), before) is better
