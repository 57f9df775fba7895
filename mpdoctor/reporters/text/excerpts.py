"""Lines of a source excerpt, and the marked span in them."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.finding import Finding
from mpdoctor.reporters.printable import one_line
from mpdoctor.reporters.text.findings import marked_span

LONGEST_LINE = 240
MOST_LINES = 8
CUT = "…"


@dataclass(frozen=True)
class ExcerptLine:
    """A line of source, in three parts: what is marked is in the middle. All of it is before where nothing is."""

    number: int
    before: str
    marked: str = ""
    after: str = ""

    @property
    def text(self) -> str:
        return self.before + self.marked + self.after


def lines_from_finding(finding: Finding) -> list[ExcerptLine]:
    excerpt, place = finding.excerpt, finding.location
    if excerpt is None or place is None:
        return []
    lines = []
    for number, line in enumerate(excerpt.lines[:MOST_LINES], excerpt.first_line):
        shown = one_line(line).rstrip()
        start, end = marked_span(line, place) if number == place.line else (0, 0)
        if end > start:
            lines.append(_cut(ExcerptLine(number, shown[:start], shown[start:end], shown[end:])))
        elif shown or number not in (excerpt.first_line, excerpt.first_line + len(excerpt.lines) - 1):
            lines.append(ExcerptLine(number, _shortened(shown)))
    return lines


def _cut(line: ExcerptLine) -> ExcerptLine:
    """A long line is shown around its mark."""
    if len(line.text) <= LONGEST_LINE:
        return line
    around = LONGEST_LINE // 4
    before = line.before if len(line.before) <= around else CUT + line.before[1 - around :]
    return ExcerptLine(line.number, before, _shortened(line.marked), _shortened(line.after, around))


def _shortened(text: str, longest: int = LONGEST_LINE) -> str:
    return text if len(text) <= longest else text[: longest - 1] + CUT
