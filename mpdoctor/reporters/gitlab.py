"""GitLab's code quality report: a JSON array of findings, which a merge request shows beside its changes.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from mpdoctor.finding import Diagnosis, Finding, Severity
from mpdoctor.reporters.printable import cell_text, visible

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(diagnosis: Diagnosis) -> str:
    paths = {target.id: target.path for target in diagnosis.targets}
    fingerprints = _distinct(finding.fingerprint for finding in diagnosis.findings)
    entries = [_entry(*both, paths) for both in zip(diagnosis.findings, fingerprints, strict=True)]
    return json.dumps(entries, indent=2) + "\n"


def _distinct(fingerprints: Iterable[str]) -> Iterator[str]:
    """The fingerprints with a number behind each repetition: GitLab shows only one of two findings with the same
    fingerprint."""
    seen: Counter[str] = Counter()
    for fingerprint in fingerprints:
        seen[fingerprint] += 1
        yield fingerprint if seen[fingerprint] == 1 else f"{fingerprint}-{seen[fingerprint]}"


def _entry(finding: Finding, fingerprint: str, paths: dict[str, str]) -> dict[str, Any]:
    severity = Severity.INFO if finding.what_if else finding.severity or Severity.INFO
    return {
        "description": visible(_description(finding)),
        "check_name": f"{finding.code} {finding.name}",
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[severity],
        "location": _location(finding, paths),
    }


def _description(finding: Finding) -> str:
    """GitLab shows little more than this text, so that it holds the code and the cure too."""
    place = finding.location
    cell = f"{cell_text(place.cell, place.line)}: " if place and place.cell else ""
    what_if = "under mixed_float16: " if finding.what_if else ""
    cure = f"\nfix: {finding.help}" if finding.help else ""
    return f"{finding.code}: {cell}{what_if}{finding.message}{cure}"


def _location(finding: Finding, paths: dict[str, str]) -> dict[str, Any]:
    """GitLab takes a finding without a line and shows its file alone; a line of a cell is no line of that file."""
    place = finding.location
    path = place.path if place is not None else paths.get(finding.target) or finding.target
    location = {"path": visible(path) or "."}  # GitLab refuses an empty one, which a damaged report may hold
    return location if place is None or place.cell else {**location, "lines": {"begin": place.line}}
