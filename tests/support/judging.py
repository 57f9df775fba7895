"""Runs all rules that read source over a text, as one Keras sees it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from marks import marks_from_source

from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding
from mpdoctor.judging.precedence import merged_findings
from mpdoctor.judging.suppressions import Suppressions
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.suppression import SuppressionFacts
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.settings.options import Settings
from mpdoctor.source import facts_from_text

KERASES = {
    "3": Keras("keras", "3.15.1", "2.21.0"),
    "tf_keras": Keras("tf_keras", "2.21.0", "2.21.0"),
    "2.15": Keras("tf.keras", "2.15.1", "2.15.1"),
    "2.10": Keras("tf.keras", "2.10.1", "2.10.1"),
    "2.4": Keras("tf.keras", "2.4.4", "2.4.4"),
}


def facts_of(text: str, keras: str, path: str = "fixture.py", root: Path | None = None) -> SourceFacts:
    return dataclasses.replace(facts_from_text(text, path, root), keras=KERASES[keras])


def findings_in(facts: SourceFacts) -> list[Finding]:
    """What all rules that read source say, settled as in a report, and what ignore comments leave of it. A rule that
    breaks fails the test."""
    suppressions = Suppressions([facts], Settings(()))
    left = suppressions.left_of(merged_findings(_said("in_source", facts, facts.keras)))
    for comment in suppressions.facts([facts.path], lambda path: facts.keras, live=False):
        left += suppressions.left_of(_said("in_suppression", comment, None))
    return left


def _said(kind: str, facts: SourceFacts | SuppressionFacts, keras: Keras | None) -> list[Finding]:
    found = []
    for finding in findings_from_facts(kind, facts, keras, lambda rule: True):
        assert isinstance(finding, Finding), finding
        found.append(finding)
    return found


def lines_and_codes(findings: list[Finding]) -> set[tuple[int, str]]:
    return {(finding.location.line if finding.location else 0, finding.code) for finding in findings}


def expected_in(text: str, keras: str) -> set[tuple[int, str]]:
    """The (line, code) pairs that a fixture's marks name for one Keras."""
    return {(mark.line or 0, mark.code) for mark in marks_from_source(text).findings(keras) if not mark.what_if}
