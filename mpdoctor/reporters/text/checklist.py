"""The checklist of the three stages (source, model, training), and the result of each."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Diagnosis, Severity, Verdict
from mpdoctor.reporters.text.headline import Mood, mood_of_verdict
from mpdoctor.reporters.text.layers import in_dtypes
from mpdoctor.reporters.text.style import Style

STAGES = {"source": "Source", "model": "Model", "training": "Training"}
NOTHING = "nothing found"
NOTHING_ELSE = "nothing else found"  # than what another stage had found before


@dataclass(frozen=True)
class Check:
    """What one stage came to.

    mood
        None for a stage that did not look.
    """

    title: str
    mood: Mood | None
    text: str


def checklist_from_diagnosis(diagnosis: Diagnosis, look: Style) -> list[Check]:
    return [_check(name, title, diagnosis, look) for name, title in STAGES.items()]


def _check(stage: str, title: str, diagnosis: Diagnosis, look: Style) -> Check:
    states = [target.stages[stage] for target in diagnosis.targets if stage in target.stages]
    reasons = dict.fromkeys(look.name(state.reason, 160) for state in states if state.status != "done" and state.reason)
    because = "; ".join(list(reasons)[:3])
    if any(state.status == "failed" for state in states):
        return Check(title, Mood.BAD, f"failed: {because}" if because else "failed")
    if not any(state.status == "done" for state in states) and not (stage == "training" and diagnosis.probes):
        return Check(title, None, f"skipped: {because}" if because else "skipped")
    saw = {"source": "", "model": _models(diagnosis, look), "training": _trainings(diagnosis, look)}[stage]
    counts, mood = _counts_of_findings(stage, diagnosis)
    if stage == "training" and diagnosis.probes:
        counts = "" if counts in (NOTHING, NOTHING_ELSE) else counts  # the verdict says it better
        mood = _worst([mood, *(mood_of_verdict(probe.verdict) for probe in diagnosis.probes)])
    return Check(title, mood, " — ".join(filter(None, (saw, counts))))


def _counts_of_findings(stage: str, diagnosis: Diagnosis) -> tuple[str, Mood]:
    real = [finding for finding in diagnosis.findings if not finding.what_if]
    findings = [finding for finding in real if finding.stage == stage]
    numbers = {severity: sum(finding.severity is severity for finding in findings) for severity in Severity}
    text = ", ".join(count(number, severity.value) for severity, number in numbers.items() if number)
    if numbers[Severity.ERROR]:
        return text, Mood.BAD
    is_seen_again = any(sight.stage == stage for finding in real for sight in finding.also_seen)
    nothing = NOTHING_ELSE if is_seen_again else NOTHING
    return text or nothing, Mood.DOUBT if numbers[Severity.WARNING] else Mood.GOOD


def _models(diagnosis: Diagnosis, look: Style) -> str:
    if len(diagnosis.models) == 1:
        return in_dtypes(diagnosis.models[0][1].layers, look)
    return count(len(diagnosis.models), "model") if diagnosis.models else ""


def _trainings(diagnosis: Diagnosis, look: Style) -> str:
    marks = [
        f"{look.name(probe.training.name, 30)}: {probe.verdict.value}" if probe.training.name else probe.verdict.value
        for probe in diagnosis.probes[:4]
    ]
    if len(diagnosis.probes) == 1 and diagnosis.probes[0].verdict is not Verdict.FAILED:
        return f"{marks[0]}: {look.name(diagnosis.probes[0].why, 160)}"
    return ", ".join(marks)


def _worst(moods: list[Mood]) -> Mood:
    return max(moods, key=list(Mood).index)
