"""Findings in the source, revised by what a training of the same program has measured: a warning may become advice, or
get numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.finding import Crashed, Finding
from mpdoctor.rules.registry import rule_with_code


def in_light_of_runs(
    items: Iterable[Finding | Crashed], runs: Iterable[ExaminationFacts]
) -> Iterator[Finding | Crashed]:
    """The findings as the trainings leave them. Only runs under the policy that the program sets itself count: what is
    true under a forced one says nothing about it."""
    trainings = [training for run in runs if not run.forced_policy for training in run.trainings]
    for item in items:
        look = rule_with_code(item.code).in_light_of if trainings and isinstance(item, Finding) else None
        if look is not None:
            for training in trainings:
                assert isinstance(item, Finding), "`look` is None for any other"
                item = look(item, training)
        yield item
