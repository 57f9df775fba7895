"""How many findings each rule has: one line a rule, the most frequent first; and how many can be fixed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mpdoctor.finding import Finding
from mpdoctor.reporters.text.fixes import fixable


def statistics_from_findings(findings: Sequence[Finding]) -> list[str]:
    """A line per rule with the number of its findings. What-if findings are not counted."""
    counts = Counter((f.code, f.severity.value if f.severity else "", f.name) for f in findings if not f.what_if)
    wide = len(str(max(counts.values(), default=0)))
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    lines = [f"{count:>{wide}}  {code}  {severity:<7}  {name}" for (code, severity, name), count in ordered]
    return [*lines, *filter(None, [fixable(findings)])]
