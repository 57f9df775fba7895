"""What a finding says beside its message: further layers, other sights of it, which part of a line it means."""

from __future__ import annotations

import difflib

from mpdoctor.facts.location import Location
from mpdoctor.finding import AlsoSeen, Finding
from mpdoctor.reporters.printable import one_line
from mpdoctor.reporters.text.style import Style

LONGEST_COMPARED = 600  # characters: to compare takes the square of it
SEEN = {"source": "in the source", "model": "in the model", "training": "while training"}


def further_layers(finding: Finding) -> list[str]:
    """The layers that a finding speaks for, where its message can't have named them all."""
    layers = finding.evidence.get("layers")
    if not isinstance(layers, list | tuple) or not all(isinstance(layer, str) for layer in layers):
        return []
    return [] if len(layers) < 2 or all(layer in finding.message for layer in layers) else list(layers)


def also_seen(finding: Finding, look: Style) -> list[str]:
    """Each further sight in a line; of those that say the same, where each was, and the words once."""
    where: dict[str, list[str]] = {}
    for seen in finding.also_seen:
        place, words = _sight(seen, finding, look)
        where.setdefault(words, []).append(place)
    return [f"also seen {' and '.join(dict.fromkeys(places))}{words}" for words, places in where.items()]


def _sight(seen: AlsoSeen, finding: Finding, look: Style) -> tuple[str, str]:
    """Where, and what was said there: "" for what the finding says itself."""
    where = SEEN.get(seen.stage, seen.stage)
    code = f" ({seen.code})" if seen.code != finding.code else ""
    if seen.code == finding.code and _say_the_same(seen.text, finding.message):
        return where, ""
    if seen.path is not None and finding.location is not None and seen.path != finding.location.path:
        where += f", {look.name(f'{seen.path}:{seen.line}', 80)}"
    return where, f"{code}: {look.name(seen.text, 200)}"


def _say_the_same(one: str, other: str) -> bool:
    words, others = (text[:LONGEST_COMPARED].split() for text in (one, other))
    return difflib.SequenceMatcher(None, words, others, autojunk=False).ratio() > 0.6


def marked_span(line: str, place: Location) -> tuple[int, int]:
    """Where the span begins and ends in the line as it is shown, tabs and escapes counted."""
    shown = one_line(line).rstrip()
    indent = len(shown) - len(shown.lstrip())
    if not place.column or place.column > len(line):
        return indent, len(shown)
    start = len(one_line(line[: place.column - 1]))
    ends_here = place.end_line in (0, place.line) and place.end_column > place.column
    end = len(one_line(line[: place.end_column - 1])) if ends_here else len(shown)
    return start, max(min(end, len(shown)), start)
