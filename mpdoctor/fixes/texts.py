"""Converts a file's bytes to text and back, keeping its encoding, byte-order mark and line ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mpdoctor.finding import Edit
from mpdoctor.source.reading import declared_encoding

_LINE_END = re.compile(r"\r\n|\r|\n")


def decoded(data: bytes) -> tuple[str, str] | None:
    """(text, encoding), the text without a byte-order mark; None where the bytes could not be made of it again."""
    try:
        encoding = declared_encoding(data)
        text = data.decode(encoding)
        return (text, encoding) if text.encode(encoding) == data else None
    except (SyntaxError, LookupError, ValueError):
        return None


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with these edits, of which no two touch the same place, in it. Lines that they put in end as those of
    the text do."""
    for start, end, put_in in sorted(spans_of_edits(text, edits), reverse=True):
        text = text[:start] + put_in + text[end:]
    return text


def spans_of_edits(text: str, edits: Iterable[Edit]) -> list[tuple[int, int, str]]:
    """Each edit as (first character, last character, replacement), the replacement with the line ends of the text
    around it."""
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    replacements = []
    for edit in edits:
        start, end = (starts[line - 1] + column - 1 for line, column in _bounds(edit))
        replacements.append((start, end, edit.text.replace("\n", line_end_at(text, start))))
    return replacements


def chosen_together(fixes: Sequence[Sequence[Edit]]) -> list[Sequence[Edit]]:
    """The fixes of one file that can be made together, in order: a fix is made whole or not at all. An edit that two
    fixes share (an import) is made once."""
    taken: list[Edit] = []
    chosen = []
    for edits in fixes:
        new = [edit for edit in edits if edit not in taken]
        if new and not any(touch(edit, other) for edit in new for other in taken):
            taken += new
            chosen.append(edits)
    return chosen


def _bounds(edit: Edit) -> tuple[tuple[int, int], tuple[int, int]]:
    place = edit.location
    return (place.line, place.column), (place.end_line, place.end_column)


def touch(one: Edit, other: Edit) -> bool:
    """Whether it matters which of the two is made first: they overlap, or put something in at the same place."""
    if (one.location.path, one.location.cell) != (other.location.path, other.location.cell):
        return False
    (start, end), (other_start, other_end) = _bounds(one), _bounds(other)
    return start == other_start or (start < other_end and other_start < end)


def line_end_at(text: str, at: int) -> str:
    """The line end of the line at this character, else that of the first line."""
    line_end = _LINE_END.search(text, at) or _LINE_END.search(text)
    return line_end[0] if line_end else "\n"
