"""Decides whether a diagnosis is healthy, and which of two diagnoses is better."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from mpdoctor.finding import Diagnosis, Finding, Probe, Severity, Verdict

# From the best to the worst. A program that is not trained has none.
VERDICTS = (
    Verdict.HEALTHY,
    Verdict.SETTLING,
    Verdict.INCONCLUSIVE,
    Verdict.OVERFLOWING,
    Verdict.NO_UPDATE,
    Verdict.STUCK,
    Verdict.COLLAPSING,
    Verdict.NOT_FINITE,
    Verdict.FAILED,
)
SOUND = (Verdict.HEALTHY, Verdict.SETTLING)

Defect = tuple[str, str]  # the code of a rule, and the layer that it speaks of or the file


class Health(NamedTuple):
    """The smaller, the better. `ended`: whether the examination itself came to nothing (exit status 2 or 3); `verdict`:
    the number of the worst in VERDICTS, their count where nothing was trained."""

    ended: bool
    verdict: int
    errors: int
    warnings: int


def is_better(one: Diagnosis, other: Diagnosis) -> bool:
    """Whether the first looks better. A sound training that was too short for a verdict counts as a sound one: the
    other, of the same time, may have come further because it computes in float32."""
    return health_of(one, is_patient=True) < health_of(other, is_patient=True)


def health_of(diagnosis: Diagnosis, is_patient: bool = False) -> Health:
    """The health of a diagnosis. `is_patient`: see `is_better`."""
    verdicts = [_rank(probe, is_patient) for probe in diagnosis.probes]
    severities = Counter(finding.severity for finding in failing(diagnosis))
    worst = max(verdicts, default=len(VERDICTS))
    return Health(diagnosis.exit_code > 1, worst, severities[Severity.ERROR], severities[Severity.WARNING])


def _rank(probe: Probe, is_patient: bool) -> int:
    is_sound = is_patient and probe.verdict in (*SOUND, Verdict.INCONCLUSIVE) and _is_sound(probe)
    return 0 if is_sound else VERDICTS.index(probe.verdict)


def failing(diagnosis: Diagnosis) -> Iterator[Finding]:
    """The findings at warning and above."""
    return (finding for finding in diagnosis.findings if finding.fails_a_run(Severity.WARNING))


def defects_of(diagnosis: Diagnosis) -> Counter[Defect]:
    """Each defect at or above the failing severity, and how often it is there. Places are left out, since each edit
    moves them."""
    return Counter((finding.code, _layer_or_file(finding)) for finding in failing(diagnosis))


def sights_of(diagnosis: Diagnosis) -> Counter[Defect]:
    """Like `defects_of`, but findings of the source are told apart by the text of their lines: where one of several of
    a rule is mended, one is gone."""
    return Counter(map(sight_of, failing(diagnosis)))


def sight_of(finding: Finding) -> Defect:
    return finding.code, finding.fingerprint if finding.stage == "source" else _layer_or_file(finding)


def _layer_or_file(finding: Finding) -> str:
    return finding.layer or (finding.location.path if finding.location else "")


def is_healthy(diagnosis: Diagnosis) -> bool:
    return all(map(_is_sound, diagnosis.probes)) and diagnosis.exit_code < 2 and not any(failing(diagnosis))


def _is_sound(probe: Probe) -> bool:
    """Whether the training looks sound. One that was too short for a verdict must at least have come to a step that was
    applied, and to a loss that is finite."""
    if probe.verdict is not Verdict.INCONCLUSIVE:
        return probe.verdict in SOUND
    steps = probe.training.steps
    if not steps:
        return probe.training.prediction is not None
    return steps[-1].applied and (steps[-1].loss is None or math.isfinite(steps[-1].loss))


def is_stopped(diagnosis: Diagnosis) -> bool:
    """Whether the program did not come to a training, or raised in it."""
    return health_of(diagnosis).verdict >= VERDICTS.index(Verdict.FAILED)


def is_no_worse(one: Diagnosis, other: Diagnosis) -> bool:
    """Whether the first has no defect that the second has not, and looks no worse."""
    return health_of(one) <= health_of(other) and not defects_of(one) - defects_of(other)
