"""The hover text of a finding: its message, and the page of its rule."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.finding import Finding
from mpdoctor.server.checking import Checked


def page_of_findings(check: Checked, findings: Iterable[Finding]) -> str:
    """Markdown; "" for no finding. A rule's page is shown once."""
    rules = {rule.code: rule for rule in check.diagnosis.rules} if check.diagnosis is not None else {}
    parts: dict[str, list[str]] = {}
    for finding in findings:
        parts.setdefault(finding.code, []).append(f"{finding.message}\n\n{finding.help}")
    pages = []
    for code, parts_of_rule in parts.items():
        rule = rules[code]
        link = f"\n\n[{rule.url}]({rule.url})" if rule.url else ""
        pages.append("\n\n".join([f"# {code} {rule.name}", *parts_of_rule, "---", rule.help_markdown]) + link)
    return "\n\n---\n\n".join(pages)


def text_of_finding(finding: Finding) -> str:
    return f"{finding.message}\n{finding.help}"
