"""One line a finding, for editors and grep: `path:line:col: CODE message`."""

from __future__ import annotations

from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.reporters.visible import one_line


def render(diagnosis: Diagnosis) -> str:
    return "".join(f"{_line_from_finding(finding)}\n" for finding in diagnosis.findings)


def _line_from_finding(finding: Finding) -> str:
    place = finding.location
    where = f"{place.path}:{place.line}:{place.column or 1}" if place else finding.target
    what_if = "under mixed_float16: " if finding.what_if else ""
    return f"{one_line(where)}: {finding.code} {what_if}{one_line(finding.message)}"
