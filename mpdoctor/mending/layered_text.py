"""A text whose edits can each be undone on their own: every piece keeps the number of the edit that made it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

Span = tuple[int, int, str]  # from where to where, and what takes the place


@dataclass(frozen=True)
class Piece:
    """A part of the text. `put_in`: the number of the edit that added it, None for the original text; `taken`: the
    numbers of the edits that remove it."""

    text: str
    put_in: int | None = None
    taken: frozenset[int] = frozenset()

    def is_shown(self, kept: Collection[int]) -> bool:
        return (self.put_in is None or self.put_in in kept) and self.taken.isdisjoint(kept)


class LayeredText:
    """A text in pieces, each with the numbers of the edits that put it in and took it away. Offsets count
    characters."""

    def __init__(self, text: str) -> None:
        self._pieces = [Piece(text)]

    def text(self, kept: Collection[int]) -> str:
        """The text with these edits, and without all others."""
        return "".join(piece.text for piece in self._pieces if piece.is_shown(kept))

    def make(self, number: int, spans: Iterable[Span], kept: Collection[int]) -> frozenset[int]:
        """Make an edit whose spans are counted in the text with `kept`, and touch no other one of it.

        Returns the numbers of the edits that it builds on: it changes what they have put in."""
        below: set[int] = set()
        for start, end, text in sorted(spans, reverse=True):
            below |= self._replace(number, start, end, text, kept)
        return frozenset(below)

    def changes(self, kept: Collection[int], of: Collection[int] | None = None) -> Iterator[Span]:
        """What the kept edits change, or those `of` them, in offsets of the text as it stood before all of them."""
        of = kept if of is None else of
        at = 0
        start, end, put_in = 0, -1, ""
        for piece in self._pieces:
            length = len(piece.text) if piece.put_in is None else 0
            is_new = piece.put_in in of and piece.is_shown(kept)
            is_gone = piece.put_in is None and not piece.taken.isdisjoint(of)
            if (is_new or is_gone) and (end != at):
                if end >= 0:
                    yield start, end, put_in
                start, end, put_in = at, at, ""
            if is_new:
                put_in += piece.text
            if is_gone:
                end = at + length
            at += length
        if end >= 0:
            yield start, end, put_in

    def beginning_of(self, numbers: Collection[int]) -> int | None:
        """Index of the first piece that one of these edits puts in or takes away; None where there is none."""
        of = frozenset(numbers)
        return next((place for place, piece in enumerate(self._pieces) if piece.put_in in of or piece.taken & of), None)

    def _replace(self, number: int, start: int, end: int, text: str, kept: Collection[int]) -> set[int]:
        below = {by for place in (start, end) if (by := self._split(place, kept)) is not None}
        at, where = 0, 0
        for place, piece in enumerate(self._pieces):
            if not piece.is_shown(kept):
                continue
            following = at + len(piece.text)
            if start <= at and following <= end and at < following:
                if piece.put_in is not None:
                    below.add(piece.put_in)
                self._pieces[place] = dataclasses.replace(piece, taken=piece.taken | {number})
            if following <= end and at < following:
                where = place + 1
            at = following
        if text:
            self._pieces.insert(where, Piece(text, number))
        return below

    def _split(self, offset: int, kept: Collection[int]) -> int | None:
        """See to it that a piece begins there; the number of the edit whose text is split by that."""
        at = 0
        for place, piece in enumerate(self._pieces):
            if not piece.is_shown(kept):
                continue
            if at < offset < at + len(piece.text):
                halves = (piece.text[: offset - at], piece.text[offset - at :])
                self._pieces[place : place + 1] = [dataclasses.replace(piece, text=half) for half in halves]
                return piece.put_in
            at += len(piece.text)
        return None
