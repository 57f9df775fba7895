"""`mpdoctor compare` from top to bottom: settings in, Compared out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from mpdoctor.compared import Compared, PolicyRun
from mpdoctor.diagnosis import diagnose
from mpdoctor.examination.examination_facts import ExaminerCrashed
from mpdoctor.examination.run import examine
from mpdoctor.facts.examination import ExaminationFacts, TimingFacts
from mpdoctor.finding import Crashed, Diagnosis, Verdict
from mpdoctor.progress import Progress
from mpdoctor.settings.options import Settings

Diagnose = Callable[[Settings, Progress], Diagnosis]
Time = Callable[[Settings, Progress], ExaminationFacts]


def _run_and_time(settings: Settings, progress: Progress) -> ExaminationFacts:
    return examine(settings.targets[0], settings, progress, settings.policy, timed=True)


def compare(
    settings: Settings,
    policies: Sequence[str],
    rounds: int,
    progress: Progress,
    diagnose: Diagnose = diagnose,
    time: Time = _run_and_time,
) -> Compared:
    """A check under each policy, and then `rounds` times each policy timed in turn: what slows the machine for a while
    slows all of them. A policy whose training raises is not timed."""
    under = {policy: _settings_under(policy, settings) for policy in policies}
    diagnoses = {policy: diagnose(under[policy], progress) for policy in policies}
    timings: dict[str, list[TimingFacts | None]] = {policy: [] for policy in policies}
    reasons = {policy: _why_not_timed(diagnoses[policy]) for policy in policies}
    for _ in range(rounds):
        for policy in policies:
            timing = None
            if not reasons[policy]:
                timing, reasons[policy], crash = _timing_or_reason(under[policy], progress, time)
                if crash is not None:
                    diagnoses[policy] = _with_crash(diagnoses[policy], crash)
            timings[policy].append(timing)
    return Compared(
        tuple(PolicyRun(policy, diagnoses[policy], tuple(timings[policy]), reasons[policy]) for policy in policies),
        rounds,
    )


def _settings_under(policy: str, settings: Settings) -> Settings:
    """The settings for a check under `policy`: with gradients compared to float32, without the second run and the
    second training of an ordinary check."""
    return dataclasses.replace(
        settings, policy=policy, holds_policy=True, what_if=False, second_training=False, reference=True
    )


def _why_not_timed(diagnosis: Diagnosis) -> str:
    """Why it cannot be timed, a clause; "" where it can."""
    probes = diagnosis.probes
    if any(probe.verdict is Verdict.FAILED for probe in probes):
        return "its training raises"
    if probes and all(probe.training.prediction is not None for probe in probes):
        told = [target.stages["training"].reason for target in diagnosis.targets if "training" in target.stages]
        return next(filter(None, told), "the program only predicts")
    return "" if probes else "no training was seen"


def _timing_or_reason(
    settings: Settings, progress: Progress, time: Time
) -> tuple[TimingFacts | None, str, Crashed | None]:
    try:
        seen = time(settings, progress)
    except ExaminerCrashed as crash:
        return None, "mpdoctor itself failed", Crashed("examiner", "timing", str(crash))
    if seen.timing is not None and not _is_measured(seen.timing):
        return None, "the times that it sent back are invalid", None
    if seen.timing is not None:
        return seen.timing, "", None
    return None, seen.not_timed or "it ended before its steps were timed", None


def _is_measured(timing: TimingFacts) -> bool:
    """Whether all of its numbers can have been measured: a program can write into the record of its examination,
    too."""
    profile = timing.profile
    positive = [took for took, _ in timing.blocks]
    if profile is not None:
        positive += [profile.steps, profile.seconds, profile.in_operations]
        positive += [known.seconds + 1 for known in profile.operations]
        positive += [known.seconds + 1 for known in profile.layers]
    return bool(timing.blocks) and all(0 < number < math.inf for number in positive) and all(
        0 <= between <= took for took, between in timing.blocks
    )  # fmt: skip


def _with_crash(diagnosis: Diagnosis, crash: Crashed) -> Diagnosis:
    return dataclasses.replace(diagnosis, crashed=(*diagnosis.crashed, crash))
