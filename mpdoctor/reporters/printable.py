"""Makes the user's text safe to show: names of layers, paths and source lines may hold anything. Also places in
words."""

from __future__ import annotations

import unicodedata

from mpdoctor.facts.location import Location, shown_location

# Cc: escape sequences that would command the terminal. Cf: marks that reorder or hide what is read
# (U+202E and the like); of them the joiner is kept, which holds emoji together. Cs: halves of characters.
_HIDING = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINER = "\u200d"
_NO_CHARACTERS = range(0xFDD0, 0xFDF0)  # nor are the last two of each plane: neither HTML nor XML may hold them
TAB = 4
LONGEST_WORD = 20  # characters: what is longer is a path or a name, and may be cut


def visible(text: str) -> str:
    """The text with everything that is not to be seen written as an escape; line breaks stay."""
    if text.isprintable() or text.replace("\n", "").isprintable():
        return text
    return text.replace("\r\n", "\n").expandtabs(TAB).translate(_SHOWN)


def one_line(text: str) -> str:
    return visible(text).replace("\n", "\\n")


def shortened(text: str, longest: int, mark: str = "…") -> str:
    """The text, its middle left out where it is longer: the beginning and the end tell a name best. A sentence is cut
    between its words."""
    if len(text) <= longest:
        return text
    tail = longest // 4
    first, last = text[: longest - tail - len(mark)], text[-tail:] if tail else ""
    before, space, cut = first.rpartition(" ")
    if space and len(cut) <= LONGEST_WORD and text[len(first)] != " ":
        first = before + " "
    cut, space, behind = last.partition(" ")
    if tail and space and len(cut) <= LONGEST_WORD and text[-tail - 1] != " ":
        last = " " + behind
    return first + mark + last


def place_text(place: Location, column: bool = False) -> str:
    """`train.py:12`, `train.py:12:5`, `analysis.ipynb:cell 3:2`. `column`: also where the whole line is meant."""
    place = shown_location(place)
    cell = f":cell {place.cell}" if place.cell else ""
    at = f":{place.column or 1}" if place.column or column else ""
    return f"{place.path}{cell}:{place.line}{at}"


def cell_text(cell: int, line: int | None) -> str:
    """`cell 3, line 2`: a line of a notebook, for what would take its number for one of the file."""
    return f"cell {cell}, line {line}"


class _Shown(dict[int, str]):
    """Table for `str.translate` from a character's number to what is shown for it, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = _visible_character(code)
        return self[code]


def _visible_character(code: int) -> str:
    character = chr(code)
    is_none = code in _NO_CHARACTERS or code & 0xFFFE == 0xFFFE
    if character in ("\n", _JOINER) or not (is_none or unicodedata.category(character) in _HIDING):
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SHOWN = _Shown()
