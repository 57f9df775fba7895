"""Edits of whole lines: a statement removed, a line inserted before or after one."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import without_call
from mpdoctor.semantics.source.texts.written import Written, argument_at, lines_of_cell, text_of, written_at
from mpdoctor.semantics.wording import expression_at

_DOCSTRING = re.compile(r"\s*[rRuU]?[\"']")


@dataclass(frozen=True)
class LogicalLine:
    """What Python reads as one line: its first and last line, the column behind its last character, and where a comment
    behind that begins. `shared`: whether several statements stand on it."""

    start: int
    end: int
    end_column: int
    shared: bool = False
    comment: tuple[int, int] | None = None


def logical_line_at(facts: SourceFacts, number: int) -> LogicalLine | None:
    lines = logical_lines(facts)
    behind = bisect_right(lines, number, key=lambda line: line.start)
    return lines[behind - 1] if behind and number <= lines[behind - 1].end else None


def statement_at(facts: SourceFacts, location: Location) -> Written | None:
    """The statement on whose lines something stands, without its comment: of `if x: y()` both. None where another one
    shares its lines."""
    line = logical_line_at(facts, location.line) if location.path == facts.path else None
    if line is None or line.shared:
        return None
    column = _indent(facts, line.start) + 1
    return written_at(facts, Location(facts.path, line.start, column, line.end, line.end_column))


def statement_at_top(facts: SourceFacts, call: Call) -> str:
    """The text of a call that is a statement of this file's top level, whose names all its functions know; "" for any
    other."""
    written = statement_at(facts, call.location) if call.context.function is None else None
    is_whole = written is not None and written.text == text_of(facts, call.location)
    return written.text if written is not None and is_whole else ""


def without_statement(facts: SourceFacts, location: Location) -> Edit | None:
    """The lines without the statement on them. Its comment stays; where nothing else stands in the block, there is a
    `pass`. None where it is not one simple statement."""
    statement = statement_at(facts, location)
    if statement is None or statement.holds_comment or _opens_block(statement):
        return None
    place = statement.location
    if not _has_company(facts, place):
        return Edit(place, "pass")
    behind = facts.lines[place.end_line - 1][place.end_column - 1 :]
    if behind.strip() or place.end_line >= lines_of_cell(facts, place.line)[1]:
        blank = len(behind) - len(behind.lstrip())
        return Edit(Location(place.path, place.line, place.column, place.end_line, place.end_column + blank), "")
    return Edit(Location(place.path, place.line, 1, place.end_line + 1, 1), "")


def passed_on(facts: SourceFacts, call: Location, position: int = 0, *names: str) -> Edit | list[Edit] | None:
    """An argument in the place of the call that it is given to; of `a = f(a)` nothing is left."""
    inner, statement = argument_at(facts, call, position, *names), statement_at(facts, call)
    same = f"{text_of(facts, inner)} = {text_of(facts, call)}" if inner is not None else None
    if statement is not None and statement.text == same:
        return without_statement(facts, call)
    return without_call(facts, call, position, *names)


def is_right_above(facts: SourceFacts, first: Location, second: Location) -> bool:
    """Whether two statements of one block follow each other, with nothing but blank lines and comments in between."""
    lines = logical_lines(facts) if first.path == second.path == facts.path else ()
    pairs = [(one, other) for one, other in pairwise(lines) if other.start <= second.line <= other.end]
    return any(
        one.start <= first.line <= one.end and _indent(facts, one.start) == _indent(facts, other.start)
        for one, other in pairs
    )


def line_before(facts: SourceFacts, location: Location, text: str) -> Edit | None:
    """A line of its own before the statement, indented like it."""
    statement = statement_at(facts, location)
    if statement is None:
        return None
    place = statement.location
    indent = facts.lines[place.line - 1][: place.column - 1]
    return Edit(Location(place.path, place.line, 1, place.line, 1), f"{indent}{text}\n")


def line_behind(facts: SourceFacts, location: Location, text: str) -> Edit | None:
    """A line of its own behind the statement and its comment, indented like it."""
    statement = statement_at(facts, location)
    if statement is None or _opens_block(statement):
        return None
    place = statement.location
    line = facts.lines[place.end_line - 1]
    indent = facts.lines[place.line - 1][: place.column - 1]
    end = len(line) + 1
    return Edit(Location(place.path, place.end_line, end, place.end_line, end), f"\n{indent}{text}")


def first_in_function(facts: SourceFacts, name: Location, text: str) -> Edit | None:
    """A line of its own as the first of a function, behind its docstring. `name`: where the function's name stands.
    None where its body stands behind the colon."""
    lines = logical_lines(facts) if name.path == facts.path else ()
    for head, body in pairwise(lines):
        if head.start <= name.line <= head.end and _indent(facts, head.start) < _indent(facts, body.start):
            place = Location(name.path, body.start, _indent(facts, body.start) + 1)
            is_docstring = _DOCSTRING.match(facts.lines[body.start - 1]) is not None
            return line_behind(facts, place, text) if is_docstring else line_before(facts, place, text)
    return None


def _bounds(place: Location) -> tuple[int, int, int, int]:
    return place.line, place.column, place.end_line, place.end_column


def _opens_block(statement: Written) -> bool:
    """Whether it ends in a colon, or has something behind one: `if x: y()`."""
    tokens = statement.tokens
    compound = ("if", "for", "while", "with", "try", "else", "elif", "except", "finally", "def", "class", "async", "@")
    return not tokens or tokens[0].text in compound


def _has_company(facts: SourceFacts, place: Location) -> bool:
    """Whether another statement stands in the same block."""
    indent = place.column - 1
    if indent == 0:
        return True
    statements = logical_lines(facts)
    number = next(n for n, line in enumerate(statements) if line.start == place.line)
    if number + 1 < len(statements) and _indent(facts, statements[number + 1].start) == indent:
        return True
    for line in reversed(statements[:number]):
        if _indent(facts, line.start) <= indent:
            return _indent(facts, line.start) == indent
    return False


def _indent(facts: SourceFacts, number: int) -> int:
    line = facts.lines[number - 1]
    return len(line) - len(line.lstrip())


@lru_cache(maxsize=4)
def logical_lines(facts: SourceFacts) -> tuple[LogicalLine, ...]:
    """The logical lines of the whole file; in a notebook those of each cell, up to where Python cannot parse it."""
    starts = [first for _, first in facts.cells] or [1]
    return tuple(
        line
        for first in starts
        for line in _logical_lines(facts.lines[first - 1 : lines_of_cell(facts, first)[1]], first)
    )


def _logical_lines(lines: list[str], first: int) -> Iterator[LogicalLine]:
    start, end, shared, comment = 0, (0, 0), False, (0, 0)
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            if token.type == tokenize.NEWLINE:
                if start:
                    at = (comment[0] + first - 1, comment[1] + 1) if comment[0] == end[0] else None
                    yield LogicalLine(start + first - 1, end[0] + first - 1, end[1] + 1, shared, at)
                start, shared, comment = 0, False, (0, 0)
            elif token.type == tokenize.COMMENT:
                comment = token.start
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                start = start or token.start[0]
                shared = shared or (token.type == tokenize.OP and token.string == ";")
                end = token.end
    except (tokenize.TokenError, SyntaxError):
        return


def name_assigned(facts: SourceFacts, made_at: Location) -> str:
    """The name in `name = model(x)`; "" where the statement is another one."""
    statement = statement_at(facts, made_at)
    written = expression_at(facts, made_at)
    match = re.fullmatch(r"(\w+)\s*=\s*(.*)", statement.text, re.DOTALL) if statement is not None else None
    same = match is not None and written is not None and text_of(facts, made_at) == match[2]
    return match[1] if match is not None and same else ""
