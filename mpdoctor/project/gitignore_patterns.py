"""Patterns as .gitignore has them, name by name. However one is made, it costs no more than its length times the
path's: one regular expression for all of it, as libraries make, takes for ever over `*a*a*a*a*a*a*a*a*b`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from mpdoctor.facts.frozen import dataclass

_CLASSES: Final[dict[str, Callable[[str], bool]]] = {
    "alnum": lambda sign: sign.isascii() and sign.isalnum(),
    "alpha": lambda sign: sign.isascii() and sign.isalpha(),
    "blank": lambda sign: sign in " \t",
    "cntrl": lambda sign: sign < " " or sign == "\x7f",
    "digit": lambda sign: "0" <= sign <= "9",
    "graph": lambda sign: "!" <= sign <= "~",
    "lower": lambda sign: "a" <= sign <= "z",
    "print": lambda sign: " " <= sign <= "~",
    "punct": lambda sign: "!" <= sign <= "~" and not sign.isalnum(),
    "space": lambda sign: sign in " \t\n\r\x0b\x0c",
    "upper": lambda sign: "A" <= sign <= "Z",
    "xdigit": lambda sign: sign in "0123456789abcdefABCDEF",
}
_BEFORE_ESCAPED_SLASH = re.compile(r"(?:^|(?<=/))\*{2,}\\/")  # `**\/x` is x in some directory, `**/x` is x as well


class _NoPattern(Exception):
    """Git, too, passes over such a line."""


@dataclass(frozen=True)
class _OneOf:
    """`[a-f_]`, `[!0-9]`, `[[:space:]]`. A range that runs backwards holds nothing."""

    is_negated: bool
    ranges: tuple[tuple[str, str], ...]
    classes: tuple[str, ...]

    def holds(self, sign: str) -> bool:
        is_listed = any(low <= sign <= high for low, high in self.ranges) or any(
            _CLASSES[name](sign) for name in self.classes
        )
        return is_listed is not self.is_negated


class _Wild:
    """A wildcard: `*` or `?`."""


_STAR, _ANY = _Wild(), _Wild()
_Sign = str | _OneOf | _Wild
_Piece = str | tuple[_Sign, ...]  # what stands between two stars; a str where it is plain


@dataclass(frozen=True, slots=False)
class _Name:
    """What a pattern says of one name in a path: the pieces between its stars."""

    pieces: tuple[_Piece, ...]

    @cached_property
    def _least_length(self) -> int:
        return sum(map(len, self.pieces))

    def matches(self, name: str) -> bool:
        if self._least_length > len(name):
            return False
        first, last = self.pieces[0], self.pieces[-1]
        if len(self.pieces) == 1:
            return len(name) == len(first) and _stands_at(first, name, 0)
        at, end = len(first), len(name) - len(last)
        if not _stands_at(first, name, 0) or not _stands_at(last, name, end):
            return False
        for piece in self.pieces[1:-1]:  # the first place is as good as any later one
            place = _place_of(piece, name, at, end)
            if place is None:
                return False
            at = place + len(piece)
        return True


@dataclass(frozen=True, slots=False)
class Pattern:
    """One line. `takes` is False for one that begins with `!` and brings back what others take."""

    takes: bool
    names: tuple[_Name | None, ...]  # None for `**`, as many names as there are
    only_directories: bool

    def matches(self, names: Sequence[str], is_directory: bool) -> bool:
        """Whether it fits this path itself, which begins where the pattern is relative to. Whether it fits a directory
        above is for the caller to ask."""
        if self.only_directories and not is_directory:
            return False
        if self._least_names > len(names) or not self._last_name.matches(names[-1]):
            return False
        return (len(self.names) == 2 and self.names[0] is None) or self._matches_all(names)

    @cached_property
    def _last_name(self) -> _Name:
        assert self.names[-1] is not None
        return self.names[-1]

    @cached_property
    def _least_names(self) -> int:
        return sum(name is not None for name in self.names)

    def _matches_all(self, names: Sequence[str]) -> bool:
        reached = {0}  # so many names may be behind what was looked at of the pattern
        for wanted in self.names:
            if wanted is None:
                reached = set(range(min(reached), len(names) + 1))
            else:
                reached = {count + 1 for count in reached if count < len(names) and wanted.matches(names[count])}
            if not reached:
                return False
        return len(names) in reached


def pattern_from_line(line: str) -> Pattern | None:
    """The pattern in a line; None where the line is empty, a comment, or no pattern."""
    text = _without_spaces_behind(line)
    if not text or text.startswith("#"):
        return None
    takes, text = not text.startswith("!"), text.removeprefix("!")
    only_directories, text = text.endswith("/"), text.removesuffix("/")
    is_anchored, text = "/" in text, text.removeprefix("/")
    text = _BEFORE_ESCAPED_SLASH.sub("*/**/", text)
    try:
        names = [_name_from_signs(signs) for signs in _split([*_signs_from_text(text)], "/")]
    except _NoPattern:
        return None
    if not is_anchored:
        names.insert(0, None)
    if names[-1] is None:  # `a/**` is what lies in a, and not a itself
        names.append(_Name(("", "")))
    return Pattern(takes, tuple(names), only_directories)


def _name_from_signs(signs: list[_Sign]) -> _Name | None:
    if len(signs) > 1 and all(sign is _STAR for sign in signs):
        return None
    return _Name(tuple(_piece_from_signs(piece) for piece in _split(signs, _STAR)))


def _piece_from_signs(signs: list[_Sign]) -> _Piece:
    plain = [sign for sign in signs if isinstance(sign, str)]
    return "".join(plain) if len(plain) == len(signs) else tuple(signs)


def _split(signs: list[_Sign], at: _Sign) -> list[list[_Sign]]:
    pieces: list[list[_Sign]] = [[]]
    for sign in signs:
        if sign == at:
            pieces.append([])
        else:
            pieces[-1].append(sign)
    return pieces


def _signs_from_text(text: str) -> Iterator[_Sign]:
    place = 0
    while place < len(text):
        sign = text[place]
        place += 1
        if sign == "[":
            one_of, place = _one_of_from_text(text, place)
            yield one_of
        elif sign == "\\":
            yield _character_at(text, place)
            place += 1
        else:
            yield _STAR if sign == "*" else _ANY if sign == "?" else sign


def _one_of_from_text(text: str, place: int) -> tuple[_OneOf, int]:
    """The bracket expression whose contents begin at `place`, and the index behind its closing bracket."""
    is_negated = _character_at(text, place) in "!^"
    place += is_negated
    ranges: list[tuple[str, str]] = []
    classes: list[str] = []
    start, before = place, ""
    while _character_at(text, place) != "]" or place == start:
        sign = text[place]
        if sign == "[" and text.startswith(":", place + 1) and (end := text.find("]", place + 2)) > 0:
            name = text[place + 2 : end - 1]
            if text[end - 1] == ":" and end - 1 > place + 1:
                if name not in _CLASSES:
                    raise _NoPattern
                classes.append(name)
                before, place = "", end + 1
                continue
        if sign == "-" and before and _character_at(text, place + 1) != "]":
            place += 1 + (text[place + 1] == "\\")
            ranges.append((before, _character_at(text, place)))
            before = ""
        else:
            place += sign == "\\"
            before = _character_at(text, place)
            ranges.append((before, before))
        place += 1
    return _OneOf(is_negated, tuple(ranges), tuple(classes)), place + 1


def _character_at(text: str, place: int) -> str:
    if place >= len(text):
        raise _NoPattern
    return text[place]


def _without_spaces_behind(line: str) -> str:
    """The line without trailing spaces, except those that a backslash escapes."""
    place = end = 0
    while place < len(line):
        is_space = line[place] == " "
        place += 2 if line[place] == "\\" else 1
        end = end if is_space else place
    return line[:end]


def _stands_at(piece: _Piece, name: str, place: int) -> bool:
    if isinstance(piece, str):
        return name.startswith(piece, place)
    return place + len(piece) <= len(name) and all(map(_is_sign, piece, name[place : place + len(piece)]))


def _is_sign(wanted: _Sign, sign: str) -> bool:
    if isinstance(wanted, _OneOf):
        return wanted.holds(sign)
    return wanted is _ANY or wanted == sign


def _place_of(piece: _Piece, name: str, start: int, end: int) -> int | None:
    if isinstance(piece, str):
        at = name.find(piece, start, end)
        return None if at < 0 else at
    places = range(start, end - len(piece) + 1)
    return next((place for place in places if _stands_at(piece, name, place)), None)
