"""Syntax highlighting of Python excerpts in HTML. The text of a line stays as it is."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from mpdoctor.facts.frozen import dataclass
from mpdoctor.reporters.text.excerpts import ExcerptLine

KINDS = (
    (Comment, "comment"),
    (String, "string"),
    (Number, "number"),
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (Name.Builtin.Pseudo, "keyword"),  # self, True
    (Name.Builtin, "name"),
    (Name.Class, "name"),
    (Name.Decorator, "name"),
    (Name.Function, "name"),
)
Part = tuple[str, str]  # a text, and its kind: one of KINDS, or ""


@dataclass(frozen=True)
class ColouredLine:
    """An ExcerptLine, each of its three parts in pieces of one kind."""

    number: int
    before: tuple[Part, ...]
    marked: tuple[Part, ...]
    after: tuple[Part, ...]


def coloured(lines: Sequence[ExcerptLine]) -> list[ColouredLine]:
    """The lines are read together: a string may begin in one and end in another."""
    kinds = iter(_kinds("\n".join(line.text for line in lines)))
    coloured = []
    for line in lines:
        parts = (_parts(text, kinds) for text in (line.before, line.marked, line.after))
        coloured.append(ColouredLine(line.number, *parts))
        next(kinds, None)  # the end of the line
    return coloured


def _parts(text: str, kinds: Iterator[str]) -> tuple[Part, ...]:
    """Takes as many of the kinds as the text has characters."""
    of_text = list(itertools.islice(kinds, len(text)))
    parts, start = [], 0
    for kind, run in itertools.groupby(of_text):
        end = start + len(list(run))
        parts.append((text[start:end], kind))
        start = end
    return tuple(parts)


def _kinds(source: str) -> list[str]:
    """For each character of the source, the kind of the word in which it stands."""
    kinds: list[str] = []
    for start, token, text in PythonLexer().get_tokens_unprocessed(source):
        kinds += [""] * (start - len(kinds)) + [_kind(token)] * len(text)
    return kinds + [""] * (len(source) - len(kinds))


@functools.cache
def _kind(token: Any) -> str:
    return next((kind for family, kind in KINDS if token in family), "")
