"""The text of an expression or statement as it is written, over all of its lines, with the places in it."""

from __future__ import annotations

import ast
import io
import tokenize
from functools import cached_property

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.events import Write
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.wording import text_at

_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_EMPTY = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True)
class Token:
    """A token that is no comment and no line's end, and where it begins and ends in the text that it is of."""

    text: str
    start: int
    end: int
    kind: int = 0

    def is_name(self, *names: str) -> bool:
        """Whether it is a name, or a keyword of Python's; one of these where some are given."""
        return self.kind == tokenize.NAME and (not names or self.text in names)

    @property
    def deeper(self) -> int:
        """How much deeper it leads: 1 where it opens parentheses or brackets, -1 where it closes some."""
        return _DEPTH.get(self.text, 0) if self.kind == tokenize.OP else 0


@dataclass(frozen=True)
class Argument:
    """One argument of a call as it is written: from where to where, and its name and value where it has a name.
    `starred`: `*rest` or `**rest`, of which the second `is_mapping`."""

    start: int
    end: int
    name: str = ""
    value_start: int = 0
    starred: bool = False
    is_mapping: bool = False


@dataclass(frozen=True, slots=False)
class Written:
    """What stands at a location. Offsets count the characters of `text`."""

    text: str
    location: Location

    def span(self, start: int, end: int) -> Location:
        """The place of a part of it."""
        (line, column), (end_line, end_column) = self._place(start), self._place(end)
        return Location(self.location.path, line, column, end_line, end_column)

    @cached_property
    def holds_comment(self) -> bool:
        return self._tokens is None or bool(self._tokens[1])

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the text; () where Python can't read it."""
        return self._tokens[0] if self._tokens is not None else ()

    @cached_property
    def arguments(self) -> tuple[Argument, ...] | None:
        """The arguments, if the expression is a call; None if it is not, or if one argument is a generator without
        parentheses."""
        opening = self.opening
        if opening is None:
            return None
        arguments: list[Argument] = []
        tokens: list[Token] = []
        depth = lambdas = 0
        for token in self.tokens[opening + 1 :]:
            depth += token.deeper
            if depth == 0 and token.is_name("for", "async"):
                return None
            if depth == 0:  # what a lambda takes is set apart by commas, too
                lambdas += token.is_name("lambda") - (lambdas > 0 and token.text == ":")
            if depth < 0 or (depth == 0 and not lambdas and token.text == ","):
                if tokens:
                    arguments.append(_argument(tokens))
                tokens = []
            else:
                tokens.append(token)
        return tuple(arguments)

    @cached_property
    def opening(self) -> int | None:
        """The number of the token that opens the last parentheses of a call: of `f(x)(y)` that before `y`."""
        if not self.tokens or self.tokens[-1].text != ")":
            return None
        depth = 0
        for number in range(len(self.tokens) - 1, -1, -1):
            depth += self.tokens[number].deeper
            if depth == 0:
                return number if number > 0 else None
        return None

    def named(self, name: str) -> Argument | None:
        return next((argument for argument in self.arguments or () if argument.name == name), None)

    def positional(self, position: int) -> Argument | None:
        """The positional argument at this place; None where a `*rest` stands before it."""
        given = [argument for argument in self.arguments or () if not argument.name]
        if any(argument.starred for argument in given[: position + 1]):
            return None
        return given[position] if position < len(given) else None

    def text_of(self, argument: Argument) -> str:
        return self.text[argument.start : argument.end]

    @cached_property
    def _tokens(self) -> tuple[tuple[Token, ...], tuple[Token, ...]] | None:
        """Tokens, and comments; None where Python can't read it."""
        starts = [0]
        for text in (*self.text.split("\n"), ")", ""):
            starts.append(starts[-1] + len(text) + 1)
        tokens: list[Token] = []
        comments: list[Token] = []
        try:
            # in parentheses its line ends end nothing
            for token in tokenize.generate_tokens(io.StringIO(f"({self.text}\n)").readline):
                (line, column), (end_line, end_column) = token.start, token.end
                shift, end_shift = int(line == 1), int(end_line == 1)
                start, end = starts[line - 1] + column - shift, starts[end_line - 1] + end_column - end_shift
                if token.type not in _EMPTY:
                    placed = Token(token.string, start, end, token.type)
                    (comments if token.type == tokenize.COMMENT else tokens).append(placed)
        except (tokenize.TokenError, SyntaxError):
            return None
        return tuple(tokens[1:-1]), tuple(comments)

    def _place(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset]
        line = before.count("\n")
        column = offset - (before.rfind("\n") + 1) + 1
        return self.location.line + line, column + (self.location.column - 1 if line == 0 else 0)


def written_at(facts: SourceFacts, location: Location) -> Written | None:
    """The expression or statement written at a location; None where the location lies in another file, or has no
    columns."""
    lines = facts.lines if location.path == facts.path else []
    last = location.end_line or location.line
    if not (0 < location.line <= last <= len(lines)) or not location.column or not location.end_column:
        return None
    parts = lines[location.line - 1 : last]
    parts[-1] = parts[-1][: location.end_column - 1]
    parts[0] = parts[0][location.column - 1 :]
    return Written("\n".join(parts), location)


def lines_of_cell(facts: SourceFacts, number: int) -> tuple[int, int]:
    """The first and the last line of what is one text with this line: of a notebook its cell."""
    first, last = 1, len(facts.lines)
    for _, start in facts.cells:
        if start <= number:
            first = start
        else:
            return first, start - 1
    return first, last


def _argument(tokens: list[Token]) -> Argument:
    start, end = tokens[0].start, tokens[-1].end
    if tokens[0].text in ("*", "**"):
        return Argument(start, end, starred=True, is_mapping=tokens[0].text == "**")
    if len(tokens) > 2 and tokens[0].is_name() and tokens[1].text == "=":
        return Argument(start, end, tokens[0].text, tokens[2].start)
    return Argument(start, end, value_start=start)


def text_of(facts: SourceFacts, location: Location) -> str | None:
    written = written_at(facts, location)
    return written.text if written is not None else None


def expression_written(facts: SourceFacts, location: Location) -> ast.expr | None:
    """The expression at a place as a syntax tree; None where Python cannot parse it."""
    try:
        return ast.parse(f"({text_of(facts, location)})", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def callee_text(facts: SourceFacts, call: Location) -> str:
    """`f` of `f(…)`; "" where that is not at hand."""
    written = written_at(facts, call)
    return written.text[: written.tokens[written.opening - 1].end] if written is not None and written.opening else ""


def argument_text(facts: SourceFacts, call: Location, name: str, position: int | None = None) -> str | None:
    """The text of an argument, given by its name or its position; None where it is not given."""
    written = written_at(facts, call)
    if written is None:
        return None
    given = written.named(name) or (written.positional(position) if position is not None else None)
    return written.text[given.value_start : given.end] if given is not None else None


def argument_at(facts: SourceFacts, call: Location, position: int = 0, *names: str) -> Location | None:
    """The place of the argument that is given at this position or by one of these names; None where it is not given."""
    written = written_at(facts, call)
    if written is None:
        return None
    given = next(filter(None, map(written.named, names)), None) or written.positional(position)
    return written.span(given.value_start, given.end) if given is not None else None


def left_operand_at(facts: SourceFacts, location: Location, operator: str) -> Location | None:
    """The place of `a` in `a / b`. None where the operator occurs more than once."""
    written = written_at(facts, location)
    end = end_of_left_operand(written, operator) if written is not None else None
    return written.span(0, end) if written is not None and end is not None else None


def end_of_left_operand(written: Written, operator: str) -> int | None:
    """The index at which the left operand ends; None where the operator occurs more than once."""
    depth, operators = 0, []
    for number, token in enumerate(written.tokens):
        depth += token.deeper
        if depth == 0 and token.text == operator:
            operators.append(number)
    return written.tokens[operators[0] - 1].end if len(operators) == 1 and operators[0] > 0 else None


def name_at(facts: SourceFacts, location: Location, name: str) -> Location | None:
    """The place of this name in an expression that contains it once; else None."""
    written = written_at(facts, location)
    if written is None:
        return None
    tokens = written.tokens
    names = [
        token
        for number, token in enumerate(tokens)
        if token.is_name(name) and not (number and tokens[number - 1].text == ".")
    ]
    return written.span(names[0].start, names[0].end) if len(names) == 1 else None


def call_of(facts: SourceFacts, attribute: Location) -> Location | None:
    """The call of a method, by where the method stands: `a.b(…)` of `a.b`."""
    start = (attribute.path, attribute.line, attribute.column)
    for call in facts.calls:
        place = call.location
        if (place.path, place.line, place.column) == start and place != attribute:
            written = written_at(facts, place)
            before = written.tokens[written.opening - 1].end if written is not None and written.opening else None
            if written is not None and before is not None and written.span(0, before) == attribute:
                return place
    return None


def owner_of_setting(facts: SourceFacts, write: Write) -> str:
    """`model.optimizer` of `model.optimizer.clipnorm = 1.0`, and of `setattr(model.optimizer, "clipnorm", 1.0)`, as it
    is written; "optimizer" where that is not at hand."""
    given = argument_at(facts, write.location, 0)
    return text_at(facts, given or write.location).partition("." + write.name)[0] or "optimizer"
