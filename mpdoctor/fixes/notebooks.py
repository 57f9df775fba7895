"""Edits cells of a notebook and keeps its JSON, except for the source lines that change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from mpdoctor.facts.frozen import dataclass
from mpdoctor.finding import Edit
from mpdoctor.fixes.texts import edited

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Part:
    """A JSON value: what it is, and where it begins and ends in the file's text."""

    value: Any
    start: int
    end: int


def edited_notebook(text: str, edits: Iterable[Edit]) -> str:
    """The file's text with these edits in it, whose lines are counted in their cells.

    Raises ValueError where a cell is not laid out as notebooks are."""
    by_cell: dict[int, list[Edit]] = {}
    for edit in edits:
        by_cell.setdefault(edit.location.cell, []).append(edit)
    sources = {number: source for number, source in enumerate(_sources(text), 1) if number in by_cell}
    for number in sorted(by_cell, reverse=True):
        source = sources.get(number)
        if source is None:
            raise ValueError(f"there is no cell {number}")
        text = text[: source.start] + _edited_source(text, source, by_cell[number]) + text[source.end :]
    return text


def cell_texts(text: str) -> list[str]:
    """What stands in each cell, of whatever kind."""
    return ["" if source is None else "".join(source.value) for source in _sources(text)]


def _edited_source(text: str, source: Part, edits: list[Edit]) -> str:
    """The value of `source` as JSON: of a list only the lines that differ are written anew."""
    is_ascii = text.isascii()

    def written(line: str) -> str:
        return json.dumps(line, ensure_ascii=is_ascii)

    old = "".join(source.value)
    new = edited(old, edits)
    if isinstance(source.value, str):
        return written(new)
    items = list(_items(text, source.start))
    lines = re.findall(r"[^\n]*\n|[^\n]+", new)
    first = 0
    while first < min(len(items), len(lines)) and items[first].value == lines[first]:
        first += 1
    last = 0
    while last < min(len(items), len(lines)) - first and items[-1 - last].value == lines[-1 - last]:
        last += 1
    between = text[items[0].end : items[1].start] if len(items) > 1 else ", "
    parts = [text[item.start : item.end] for item in items[:first]]
    parts += [written(line) for line in lines[first : len(lines) - last]]
    parts += [text[item.start : item.end] for item in items[len(items) - last :]] if last else []
    if not items:
        return "[" + between.join(parts) + "]"
    return text[source.start : items[0].start] + between.join(parts) + text[items[-1].end : source.end]


def _sources(text: str) -> Iterator[Part | None]:
    """What each cell holds in `source` (`input` in format 3), None where that is no text."""
    whole = _members(text, 0)
    if "cells" in whole:
        cells = list(_items(text, whole["cells"].start))
    else:
        sheets = _items(text, whole["worksheets"].start) if "worksheets" in whole else ()
        cells = [
            cell
            for sheet in sheets
            if isinstance(sheet.value, dict) and isinstance(sheet.value.get("cells"), list)
            for cell in _items(text, _members(text, sheet.start)["cells"].start)
        ]
    for cell in cells:
        members = _members(text, cell.start) if isinstance(cell.value, dict) else {}
        source = members.get("source", members.get("input"))
        is_text = source is not None and (
            isinstance(source.value, str)
            or (isinstance(source.value, list) and all(isinstance(line, str) for line in source.value))
        )
        yield source if is_text else None


def _members(text: str, at: int) -> dict[str, Part]:
    """The members of the JSON object that begins at `at`. Raises ValueError where none begins there."""
    members: dict[str, Part] = {}
    at = _behind_sign(text, at, "{")
    while text[at : at + 1] != "}":
        if members:
            at = _behind_sign(text, at, ",")
        name = _value(text, at)
        if not isinstance(name.value, str):
            raise ValueError(f"there is no name at character {at}")
        part = _value(text, _behind_sign(text, name.end, ":"))
        members[name.value] = part
        at = _behind_blanks(text, part.end)
    return members


def _items(text: str, at: int) -> Iterator[Part]:
    """The items of the JSON list that begins at `at`. Raises ValueError where none begins there."""
    at = _behind_sign(text, at, "[")
    is_first = True
    while text[at : at + 1] != "]":
        if not is_first:
            at = _behind_sign(text, at, ",")
        part = _value(text, at)
        yield part
        at, is_first = _behind_blanks(text, part.end), False


def _value(text: str, at: int) -> Part:
    value, end = _DECODER.raw_decode(text, at)
    return Part(value, at, end)


def _behind_sign(text: str, at: int, sign: str) -> int:
    """The place behind this sign and the blanks around it."""
    at = _behind_blanks(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"there is no {sign} at character {at}")
    return _behind_blanks(text, at + 1)


def _behind_blanks(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at
