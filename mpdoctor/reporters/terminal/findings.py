"""One finding: what and where, the source line with its span marked, what to change."""

from __future__ import annotations

import difflib

from rich.cells import cell_len
from rich.text import Text

from mpdoctor.facts.location import Location
from mpdoctor.finding import AlsoSeen, Excerpt, Finding, Severity
from mpdoctor.reporters.terminal.look import SEVERITY_STYLES, Look, Paragraph, indented, labelled
from mpdoctor.reporters.visible import one_line, place_text

MOST_LINES = 8
SEEN = {"source": "in the source", "model": "in the model", "training": "while training"}


def paragraph_from_finding(finding: Finding, look: Look) -> Paragraph:
    severity = finding.severity or Severity.INFO
    style = SEVERITY_STYLES[severity]
    told: Paragraph = [Text.assemble((severity.value, style), " ", (finding.code, "bold"), " ", finding.name)]
    if finding.message:
        told.append(indented(look.prose(finding.message)))
    if finding.location is not None:
        told.append(indented(Text(look.name(place_text(finding.location)), style="dim", overflow="fold")))
        if finding.excerpt is not None:
            told += [indented(line) for line in _excerpt_lines(finding.excerpt, finding.location, style, look)]
    layers = _layers(finding)
    if layers:
        told.append(labelled("layers:", Text(look.listed(layers, most=6), overflow="fold")))
    if finding.help:
        told.append(labelled("fix:", look.prose(finding.help), "bold green"))
    told += [indented(_also_seen(seen, finding, look)) for seen in finding.also_seen]
    return told


def _layers(finding: Finding) -> list[str]:
    """The layers that a finding speaks for, where its message can't have named them all."""
    layers = finding.evidence.get("layers")
    if not isinstance(layers, list | tuple) or not all(isinstance(layer, str) for layer in layers):
        return []
    return [] if len(layers) < 2 or all(layer in finding.message for layer in layers) else list(layers)


def _also_seen(seen: AlsoSeen, finding: Finding, look: Look) -> Text:
    where = SEEN.get(seen.stage, seen.stage)
    code = f" ({seen.code})" if seen.code != finding.code else ""
    if seen.code == finding.code and _say_the_same(seen.text, finding.message):
        return Text(f"also seen {where}", style="dim")
    return Text(f"also seen {where}{code}: {look.name(seen.text, 200)}", style="dim", overflow="fold")


def _say_the_same(one: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, one.split(), other.split(), autojunk=False).ratio() > 0.6


def _excerpt_lines(excerpt: Excerpt, place: Location, style: str, look: Look) -> list[Text]:
    last_number = excerpt.first_line + len(excerpt.lines) - 1
    gutter = len(str(last_number))
    bar = look.sign(" │ ", " | ")
    room = look.width - 2 - gutter - len(bar)
    shown = [one_line(line).rstrip() for line in excerpt.lines[:MOST_LINES]]
    at = place.line - excerpt.first_line
    start, end = _span(excerpt.lines[at], place) if 0 <= at < len(shown) else (0, 0)
    # a long line is shown from near its span on; the other lines keep their place under it
    cut = 0 if end <= room else max(0, start - room // 4)
    lines = []
    for offset, line in enumerate(shown):
        if not line and offset in (0, len(shown) - 1) and offset != at:
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


def _span(line: str, place: Location) -> tuple[int, int]:
    """Where the span begins and ends in the line as it is shown, tabs and escapes counted."""
    shown = one_line(line).rstrip()
    indent = len(shown) - len(shown.lstrip())
    if not place.column or place.column > len(line):
        return indent, len(shown)
    start = len(one_line(line[: place.column - 1]))
    ends_here = place.end_line in (0, place.line) and place.end_column > place.column
    end = len(one_line(line[: place.end_column - 1])) if ends_here else len(shown)
    return start, max(min(end, len(shown)), start)
