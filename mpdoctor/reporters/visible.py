"""Text of a user's made safe to show: names of layers, paths and source lines may hold anything. And where things
stand, in words."""

from __future__ import annotations

import unicodedata

from mpdoctor.facts.location import Location

# Cc: escape sequences that would command the terminal. Cf: marks that reorder or hide what is read
# (U+202E and the like); of them the joiner is kept, which holds emoji together. Cs: halves of characters.
_HIDING = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINER = "\u200d"
TAB = 4


def visible(text: str) -> str:
    """The text with everything that is not to be seen written as an escape; line breaks stay."""
    if text.isascii() and text.isprintable():
        return text
    shown = (_visible_character(character) for character in text.replace("\r\n", "\n").expandtabs(TAB))
    return "".join(shown)


def one_line(text: str) -> str:
    return visible(text).replace("\n", "\\n")


def shortened(text: str, longest: int, mark: str = "…") -> str:
    """The text, its middle left out where it is longer: the beginning and the end tell a name best."""
    if len(text) <= longest:
        return text
    tail = longest // 4
    return text[: longest - tail - len(mark)] + mark + text[-tail:]


def place_text(place: Location, column: bool = False) -> str:
    """`train.py:12`, `train.py:12:5`, `analysis.ipynb:cell 3:2`. `column`: also where the whole line is meant."""
    cell = f":cell {place.cell}" if place.cell else ""
    at = f":{place.column or 1}" if place.column or column else ""
    return f"{place.path}{cell}:{place.line}{at}"


def cell_text(cell: int, line: int | None) -> str:
    """`cell 3, line 2`: a line of a notebook, for what would take its number for one of the file."""
    return f"cell {cell}, line {line}"


def _visible_character(character: str) -> str:
    if character == "\n" or character == _JOINER or unicodedata.category(character) not in _HIDING:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
