"""The few source lines that are shown with a finding."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from mpdoctor.facts.location import Location, lines_of
from mpdoctor.finding import Excerpt
from mpdoctor.source.reading import text_from_file

AROUND = 1
LONGEST_SPAN = 6
LONGEST_LINE = 2000  # a generated file may hold megabytes on one line


def excerpt_from_location(
    location: Location,
    texts: Mapping[str, str] = MappingProxyType({}),
    edited: Mapping[Path, bytes] = MappingProxyType({}),
) -> Excerpt | None:
    """The lines of the span with one line before and one after; None where the file can't be read (any more), is no
    text, or is shorter than that. `texts` holds, by path, what was read before the program ran: it may have changed its
    own file. `edited`: texts that stand in for files."""
    text = texts.get(location.path) or text_from_file(location.path, edited)
    if text is None:
        return None
    lines = _lines(text)
    if not 1 <= location.line <= len(lines):
        return None
    last = min(max(location.end_line, location.line), location.line + LONGEST_SPAN - 1)
    first = max(location.line - AROUND, 1)
    return Excerpt(first, tuple(line[:LONGEST_LINE] for line in lines[first - 1 : last + AROUND]))


@lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    """A file may have ten thousand findings, one after the other."""
    lines = lines_of(text)
    return lines[:-1] if lines[-1] == "" else lines
