"""Findings of one line, which is told once, with the edits of them all."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator

from mpdoctor.finding import Edit, Finding


def edited_together(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, where those of one line that say the same, and are told once, carry the edits of all of them: an
    edit of another rule in the same round may end what the second one is found by, and leave its number as it is."""
    findings = list(findings)
    edits: dict[object, dict[Edit, None]] = defaultdict(dict)
    for finding in findings:
        if finding.fix is not None:
            edits[_told_once(finding)].update(dict.fromkeys(finding.fix.edits))
    for finding in findings:
        together = tuple(edits[_told_once(finding)])
        if finding.fix is None or len(together) == len(finding.fix.edits):
            yield finding
        else:
            yield dataclasses.replace(finding, fix=dataclasses.replace(finding.fix, edits=together))


def _told_once(finding: Finding) -> object:
    place, title = finding.location, finding.fix.title if finding.fix is not None else ""
    return (place.path, place.line) if place is not None else None, finding.message, finding.help, title
