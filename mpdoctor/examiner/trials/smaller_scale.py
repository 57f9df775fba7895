"""A smaller fixed loss scale, tried on the batches of a training whose gradients overflow by their scale alone."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from mpdoctor.facts.remedies import ROOM, RemedyFacts, TrialResult

if TYPE_CHECKING:
    from mpdoctor.examiner.trials.one_trial import Case, TrialRunner


def smaller_scale(runner: TrialRunner, cases: list[Case], scale: float, seconds: float) -> RemedyFacts:
    """The largest power of 2 below `scale` at which every batch is finite with room: at ROOM times as much, too."""
    began, trials = time.monotonic(), 0

    def told(tried: TrialResult, reason: str = "", scale: float | None = None) -> RemedyFacts:
        spent = time.monotonic() - began
        return RemedyFacts(
            "smaller-scale",
            tried,
            reason=reason,
            batches=len(cases),
            trials=trials,
            seconds=spent,
            scale=scale,
        )

    holds, fails = -1, math.ceil(math.log2(scale)) if scale > 1 else 0  # powers of 2, those that hold up to the first
    while fails - holds > 1:
        power = (holds + fails) // 2
        finite = True
        for case in cases:
            if time.monotonic() - began > seconds:
                return told("not-tried", f"the time of --budget was spent after {trials} trials")
            trials += 1
            trial = runner.run((), case, scale=ROOM * 2.0**power)
            if trial.error:
                return told("not-tried", f"the failing step cannot be repeated eagerly: {trial.error}")
            if not trial.is_finite:
                finite = False
                break
        holds, fails = (power, fails) if finite else (holds, power)
    if holds < 0:
        return told("failed", f"at a loss scale of {ROOM} the step is not finite either")
    return told("healed", scale=2.0**holds)
