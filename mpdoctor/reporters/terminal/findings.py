"""One finding: what and where, the source line with its span marked, what to change."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from mpdoctor.facts.location import Location
from mpdoctor.finding import Excerpt, Finding, Severity
from mpdoctor.reporters.printable import one_line, place_text
from mpdoctor.reporters.terminal.style import SEVERITY_STYLES, Paragraph, Style, indented, labelled, left_out
from mpdoctor.reporters.text.findings import also_seen, further_layers, marked_span
from mpdoctor.reporters.text.fixes import how_to_fix
from mpdoctor.reporters.text.operations import named_values

MOST_LINES = 8
MOST_SIGHTS = 12


def paragraph_from_finding(finding: Finding, look: Style) -> Paragraph:
    severity = finding.severity or Severity.INFO
    style = SEVERITY_STYLES[severity]
    lines: Paragraph = [
        Text.assemble((severity.value, style), " ", (finding.code, look.link(finding)), " ", finding.name)
    ]
    if finding.message:
        lines.append(indented(look.prose(finding.message)))
    if finding.location is not None:
        lines.append(indented(Text(look.name(place_text(finding.location)), style="dim", overflow="fold")))
        if finding.excerpt is not None:
            lines += [indented(line) for line in _excerpt_lines(finding.excerpt, finding.location, style, look)]
            values = named_values(finding, look)
            lines += [indented(Text(values, style="dim", overflow="fold"))] if values else []
    layers = further_layers(finding)
    if layers:
        lines.append(labelled("layers:", Text(look.listed(layers, most=6), overflow="fold")))
    if finding.help:
        lines.append(labelled("fix:", look.prose(finding.help), "bold green"))
    if finding.fix is not None:
        lines.append(indented(Text(look.name(how_to_fix(finding), 200), style="dim", overflow="fold")))
    sights = also_seen(finding, look)
    lines += [indented(Text(seen, style="dim", overflow="fold")) for seen in sights[:MOST_SIGHTS]]
    return lines + [indented(line) for line in left_out(len(sights) - MOST_SIGHTS, "sight of it", look)]


def _excerpt_lines(excerpt: Excerpt, place: Location, style: str, look: Style) -> list[Text]:
    last_number = excerpt.first_line + len(excerpt.lines) - 1
    gutter = len(str(last_number))
    bar = look.sign(" │ ", " | ")
    room = look.width - 2 - gutter - len(bar)
    shown = [one_line(line).rstrip() for line in excerpt.lines[:MOST_LINES]]
    at = place.line - excerpt.first_line
    start, end = marked_span(excerpt.lines[at], place) if 0 <= at < len(shown) else (0, 0)
    # a long line is shown from near its span on, or its end; the other lines keep their place under it
    cut = 0 if end <= room else max(0, min(start - room // 4, _start_of_end(shown[at], room)))
    lines = []
    for offset, line in enumerate(shown):
        if not line[cut:] and offset in (0, len(shown) - 1) and offset != at:
            continue  # an empty line beside it tells nothing
        if cut and line[cut:]:
            line = line[:cut] + look.sign("…", "<") + line[cut + 1 :]
        text = Text(line[cut:], style="" if offset == at else "dim", no_wrap=True)
        if offset == at:
            text.stylize(style, start - cut, end - cut)
        text.truncate(room, overflow="ellipsis" if look.blocks else "crop")
        number = (f"{excerpt.first_line + offset:>{gutter}}{bar}", "dim")
        lines.append(Text.assemble(number, text, no_wrap=True))
        if offset == at and end > start:
            before = cell_len(line[cut:start])
            carets = max(min(cell_len(line[start:end]), room - before), 1)
            mark = ("^" * carets, style)
            lines.append(Text.assemble((" " * gutter + bar, "dim"), " " * before, mark, no_wrap=True))
    return lines


def _start_of_end(line: str, room: int) -> int:
    """The index of the longest end of this line that fits into `room` columns; a character may take two."""
    start = max(len(line) - room, 0)
    while cell_len(line[start:]) > room:
        start += 1
    return start
