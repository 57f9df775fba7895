"""The order in which people read the findings of an examination: what ends or spoils the training comes first."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from mpdoctor.finding import NO_RUN, Diagnosis, Finding, Severity, Stage

OF_A_RUN = (*NO_RUN, "MP9")  # the rules of what the examined program did, and not of its source


def weightiest_first(diagnosis: Diagnosis) -> Diagnosis:
    """The findings of each target with errors first, among them those of the run, or of why there was none; equal ones
    stay in reading order. A check of the source alone keeps its order, from line to line."""
    meant_to_run = any(finding.code.startswith(NO_RUN) for finding in diagnosis.findings)
    if not meant_to_run and not any(_was_run(target.stages) for target in diagnosis.targets):
        return diagnosis
    places = {target.id: number for number, target in enumerate(diagnosis.targets)}

    def weight(finding: Finding) -> tuple[int, int, bool]:
        rank = (finding.severity or Severity.INFO).rank
        return places.get(finding.target, len(places)), -rank, not finding.code.startswith(OF_A_RUN)

    return dataclasses.replace(diagnosis, findings=tuple(sorted(diagnosis.findings, key=weight)))


def _was_run(stages: Mapping[str, Stage]) -> bool:
    return any(stages[name].status != "skipped" for name in ("model", "training") if name in stages)
