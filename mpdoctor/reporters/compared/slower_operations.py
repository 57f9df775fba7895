"""Which operations take longer than under the first policy, where a step does: by TensorFlow's profiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from mpdoctor.compared import Compared, PolicyRun
from mpdoctor.facts.examination import ProfileFacts
from mpdoctor.facts.written_numbers import count
from mpdoctor.reporters.compared.rows import time_text

MOST_NAMED = 4
MUCH = 0.1  # of the time by which all operations together take longer
ONEDNN = "_Mkl"
# what a graph is rewritten to for one multiplication: by oneDNN, with a bias, with what follows
_REWRITTEN = re.compile(r"^_(?=Mkl|Fused)(Mkl(Native)?)?(Fused(?!BatchNorm))?|WithBias$")

Times = dict[str, tuple[float, bool]]  # by operation: seconds a step, and whether oneDNN computes it


def slower_operations(compared: Compared, run: PolicyRun) -> Iterator[str]:
    """Sentences; none unless its step was slower in each round."""
    ratio = compared.speed(run)
    rounds = list(_rounds(compared, run))
    if run is compared.base or ratio is None or ratio.high >= 1 or not rounds:
        return
    more = median(sum(_seconds(own)) - sum(_seconds(first)) for first, own in rounds)
    slower = {kind: rise for kind in rounds[0][1] if (rise := _rise(kind, rounds)) >= MUCH * more}
    if more <= 0 or not slower:
        return
    longest = sorted(slower, key=lambda kind: -slower[kind])
    named = ", ".join(_time_beside_first(kind, rounds) for kind in longest[:MOST_NAMED])
    others = f", and {count(len(longest) - MOST_NAMED, 'type')} more" if len(longest) > MOST_NAMED else ""
    base = compared.base.policy
    yield f"Added up, its operations take {time_text(more)} a step longer than under {base}: {named}{others}."
    without = [kind for kind in longest[:MOST_NAMED] if all(_lost_onednn(kind, *both) for both in rounds)]
    if without:
        yield f"oneDNN computes {', '.join(f'`{kind}`' for kind in without)} under {base}, and not under {run.policy}."


def _rounds(compared: Compared, run: PolicyRun) -> Iterator[tuple[Times, Times]]:
    """For each round in which all operations of both are known: the times under the first policy, and the run's own."""
    for first, own in zip(compared.base.timings, run.timings, strict=True):
        profiles = [timing.profile for timing in (first, own) if timing is not None]
        known = [_times(profile) for profile in profiles if profile is not None and profile.is_complete]
        if len(known) == 2:
            yield known[0], known[1]


def _times(profile: ProfileFacts) -> Times:
    times: Times = {}
    for operation in profile.operations:
        kind = plain_kind(operation.kind)
        seconds, by_onednn = times.get(kind, (0.0, False))
        by_onednn = by_onednn or operation.kind.startswith(ONEDNN)
        times[kind] = seconds + operation.seconds / profile.steps, by_onednn
    return times


def profiles_of(run: PolicyRun) -> list[ProfileFacts]:
    """The profile of each round that names operations."""
    return [timing.profile for timing in run.known if timing.profile is not None and timing.profile.operations]


def times_by_kind(run: PolicyRun) -> dict[str, float]:
    """Seconds per step for each kind of operation: the median of the rounds that measured it."""
    times: dict[str, list[float]] = {}
    for profile in profiles_of(run):
        for kind, (seconds, _) in _times(profile).items():
            times.setdefault(kind, []).append(seconds)
    return {kind: median(seconds) for kind, seconds in times.items()}


def plain_kind(kind: str) -> str:
    """The kind of the original operation for one that a graph was rewritten to."""
    return _REWRITTEN.sub("", kind)


def _seconds(times: Times) -> list[float]:
    return [seconds for seconds, _ in times.values()]


def _time_of_kind(kind: str, times: Times) -> float:
    return times[kind][0] if kind in times else 0.0


def _rise(kind: str, rounds: list[tuple[Times, Times]]) -> float:
    """The median over the rounds of how much longer the kind took; 0 unless it took longer in each of them."""
    rises = [_time_of_kind(kind, own) - _time_of_kind(kind, first) for first, own in rounds]
    return median(rises) if min(rises) > 0 else 0.0


def _time_beside_first(kind: str, rounds: list[tuple[Times, Times]]) -> str:
    before, now = (median(_time_of_kind(kind, both[number]) for both in rounds) for number in (0, 1))
    return f"`{kind}` {time_text(now)} " + (f"instead of {time_text(before)}" if before else "instead of none")


def _lost_onednn(kind: str, first: Times, own: Times) -> bool:
    return kind in first and kind in own and first[kind][1] and not own[kind][1]
