"""The training before and after a remedy, side by side, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from mpdoctor.facts.training import SecondTrainingFacts, TrainingFacts
from mpdoctor.facts.written_numbers import number_text
from mpdoctor.finding import Probe
from mpdoctor.reporters.text.style import Style
from mpdoctor.reporters.text.training import course_of_loss

BEFORE, AFTER = "before", "after"


class Compared(NamedTuple):
    """One thing of both trainings."""

    what: str
    before: str
    after: str


def what_was_changed(second: SecondTrainingFacts, look: Style) -> str:
    return f"the same steps from the same weights, with {look.listed(second.layers)} in float32"


def why_not_tried(second: SecondTrainingFacts, look: Style) -> str:
    changed = f" with {look.listed(second.layers)} in float32" if second.layers else ""
    return f"not tried{changed}: {look.name(second.not_tried, 300)}"


def compared(probe: Probe, look: Style) -> list[Compared]:
    """Both trainings, row by row; [] where there was no second one."""
    training, second = probe.training, probe.training.second
    if second is None or probe.second is None:
        return []
    after = replace(training, steps=second.steps)
    rows = [
        Compared("verdict", probe.verdict.value, probe.second.verdict.value),
        Compared("loss scale", _scale(training, look), _scale(after, look)),
        Compared("skipped", _skipped(training), _skipped(after)),
        Compared("loss", course_of_loss(training, look), course_of_loss(after, look)),
    ]
    if second.failing_batch_finite is not None:
        rows.append(Compared("failing batch", "not finite", "finite" if second.failing_batch_finite else "not finite"))
    return [row for row in rows if row.before or row.after]


def _scale(training: TrainingFacts, look: Style) -> str:
    known = [step.loss_scale for step in training.steps if step.loss_scale is not None]
    if not known:
        return ""
    first, last = number_text(known[0]), number_text(known[-1])
    return first if len(set(known)) == 1 else f"{first} {look.arrow} {last}"


def _skipped(training: TrainingFacts) -> str:
    return f"{sum(not step.applied for step in training.steps)} of {len(training.steps)}"
