"""One line a finding, for editors and grep: `path:line:col: CODE severity: message`; of a notebook `path:cell
3:line:col: …`."""

from __future__ import annotations

from mpdoctor.finding import Diagnosis, Finding, Severity
from mpdoctor.reporters.printable import one_line, place_text


def render(diagnosis: Diagnosis) -> str:
    return "".join(f"{_line_from_finding(finding)}\n" for finding in diagnosis.findings)


def _line_from_finding(finding: Finding) -> str:
    what_if = "under mixed_float16: " if finding.what_if else ""
    where = place_text(finding.location, column=True) if finding.location else finding.target
    severity = (finding.severity or Severity.INFO).value
    return f"{one_line(where)}: {finding.code} {severity}: {what_if}{one_line(finding.message)}"
