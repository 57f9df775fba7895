"""A long list of findings in groups, one for each file."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.facts.frozen import dataclass
from mpdoctor.finding import Finding

MOST_UNGROUPED = 10
NOWHERE = "No line is known"


@dataclass(frozen=True)
class Group:
    """`path` is None for findings that know no line."""

    path: str | None
    findings: tuple[Finding, ...]


def groups_from_findings(findings: Iterable[Finding]) -> list[Group]:
    """Files in the order in which they are first spoken of, what knows no line last; [] where all can be overlooked."""
    all_findings = list(findings)
    if len(all_findings) <= MOST_UNGROUPED:
        return []
    by_path: dict[str | None, list[Finding]] = {}
    for finding in all_findings:
        by_path.setdefault(finding.location.path if finding.location else None, []).append(finding)
    groups = [Group(path, tuple(of_path)) for path, of_path in by_path.items()]
    return sorted(groups, key=lambda group: group.path is None)
