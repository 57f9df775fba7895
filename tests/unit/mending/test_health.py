"""Which short training counts as that of a mended program."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mpdoctor.facts.training import StepFacts
from mpdoctor.finding import Diagnosis, Probe, Verdict
from mpdoctor.mending.health import is_healthy

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
    training: Any = SimpleNamespace(steps=tuple(steps), prediction=None)
    diagnosis = Diagnosis((), (), (), (Probe(training, verdict, ""),), (), (), (), {}, 0, 0, "", "")
    assert is_healthy(diagnosis) is healthy
