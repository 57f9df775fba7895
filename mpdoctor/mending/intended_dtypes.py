"""The findings that a mending edit brings about on purpose."""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import replace

from mpdoctor.finding import Diagnosis, Finding, Severity
from mpdoctor.mending.draft import Proposal
from mpdoctor.mending.health import Defect, sight_of

INNER_FOLLOWS_POLICY = "MP208"
OUTER_CLASS = "outer_class"  # in its evidence: the class that is given another dtype


def without_intended(diagnosis: Diagnosis, made: Collection[Proposal], known: Container[Defect]) -> Diagnosis:
    """The diagnosis in which the layers inside a class whose own code alone got float32 are only mentioned (INFO) as
    following the global policy. `known`: what was seen without any edit."""
    classes = {proposal.own_code_of for proposal in made} - {""}
    if not classes:
        return diagnosis
    findings = (
        replace(finding, severity=Severity.INFO)
        if _class_outside(finding) in classes and sight_of(finding) not in known
        else finding
        for finding in diagnosis.findings
    )
    return replace(diagnosis, findings=tuple(findings))


def classes_with_intended(diagnosis: Diagnosis) -> tuple[str, ...]:
    """The classes that `without_intended` found such layers in."""
    mentioned = (finding for finding in diagnosis.findings if finding.severity is Severity.INFO)
    return tuple(dict.fromkeys(filter(None, map(_class_outside, mentioned))))


def _class_outside(finding: Finding) -> str:
    return str(finding.evidence.get(OUTER_CLASS, "")) if finding.code == INNER_FOLLOWS_POLICY else ""
