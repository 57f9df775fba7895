"""Filters findings: removes those in a baseline, or keeps only those on changed lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.judging.shown_findings import rule_summaries
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.settings.options import Settings

Sources = Mapping[str, SourceFacts]
# What is left of a diagnosis; and what was read, by path as shown.
Choice = Callable[[Diagnosis, Sources], Diagnosis]


def everything(diagnosis: Diagnosis, sources: Sources) -> Diagnosis:
    return diagnosis


def both(first: Choice, second: Choice) -> Choice:
    return lambda diagnosis, sources: second(first(diagnosis, sources), sources)


def with_findings(diagnosis: Diagnosis, kept: Sequence[Finding], settings: Settings) -> Diagnosis:
    """The diagnosis with only these findings; the others count as suppressed. An exit status of 2 or 3 stays."""
    code = diagnosis.exit_code
    if code < 2:
        failing = any(finding.fails_a_run(settings.fail_on) for finding in kept)
        code = int(failing and not settings.exit_zero)
    return dataclasses.replace(
        diagnosis,
        findings=tuple(kept),
        rules=rule_summaries(kept),
        suppressed=diagnosis.suppressed + len(diagnosis.findings) - len(kept),
        exit_code=code,
    )
