"""The hover text of a finding: its message, and the page of its rule."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.finding import Finding
from mpdoctor.reporters.markdown.escaping import prose
from mpdoctor.reporters.printable import visible
from mpdoctor.server.checking import Checked


def page_of_findings(check: Checked, findings: Iterable[Finding]) -> str:
    """Markdown; "" for no finding. A rule's page is shown once. What messages quote of a program is text: it brings no
    link, picture or HTML into an editor."""
    rules = {rule.code: rule for rule in check.diagnosis.rules} if check.diagnosis is not None else {}
    parts: dict[str, list[str]] = {}
    for finding in findings:
        parts.setdefault(finding.code, []).append(f"{prose(finding.message)}\n\n{prose(finding.help)}")
    pages = []
    for code, parts_of_rule in parts.items():
        rule = rules[code]
        link = f"\n\n[{rule.url}]({rule.url})" if rule.url else ""
        pages.append("\n\n".join([f"# {code} {rule.name}", *parts_of_rule, "---", rule.help_markdown]) + link)
    return "\n\n---\n\n".join(pages)


def text_of_finding(finding: Finding) -> str:
    return visible(f"{finding.message}\n{finding.help}")


def text_without_links(message: str) -> str:
    """A message of which an editor that takes `[text](address)` for a link makes none: an address may be a command."""
    return visible(message).replace("](", "] (")
