"""Edits of expressions: another text in the place of one, arguments of calls, a call put around or taken away."""

from __future__ import annotations

import dataclasses
import re
import tokenize
from collections.abc import Iterable
from itertools import combinations, starmap

from mpdoctor.facts.location import Location, holds
from mpdoctor.finding import Edit, Fix
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.texts.written import Argument, Written, argument_at, end_of_left_operand, written_at

Edits = Edit | Iterable[Edit] | None


def safe_fix(title: str, *edits: Edits) -> Fix | None:
    """A fix after which the program means the same, or whose line raised before. None where one of the edits could not
    be made, or where two of them exclude each other."""
    return _fix(title, safe=True, edits=edits)


def unsafe_fix(title: str, *edits: Edits) -> Fix | None:
    """A fix after which the program computes other numbers, or has other layers. None where `safe_fix` is."""
    return _fix(title, safe=False, edits=edits)


def _fix(title: str, safe: bool, edits: Iterable[Edits]) -> Fix | None:
    made: list[Edit] = []
    for edit in edits:
        if edit is None:
            return None
        made.extend([edit] if isinstance(edit, Edit) else edit)
    return Fix(title, safe, tuple(made)) if made and not any(starmap(_overlap, combinations(made, 2))) else None


def _overlap(one: Edit, other: Edit) -> bool:
    """Whether two edits remove the same characters, or one inserts text among characters that the other removes. That
    happens where one line stands for several things, as in a method that wraps whatever it is given."""
    first, second = one.location, other.location
    if one == other or (first.path, first.cell) != (second.path, second.cell):
        return False
    starts = (first.line, first.column), (second.line, second.column)
    ends = (first.end_line, first.end_column), (second.end_line, second.end_column)
    is_put_in = starts[0] == ends[0] or starts[1] == ends[1]
    return min(starts) < max(starts) <= min(ends) < max(ends) if is_put_in else max(starts) < min(ends)


def replaced(facts: SourceFacts, location: Location, text: str) -> Edit | None:
    """Another text in the place of this one. None where a comment would be lost."""
    written = written_at(facts, location)
    return _replaced(written, 0, len(written.text), text) if written is not None else None


def put_before(facts: SourceFacts, location: Location, text: str) -> Edit | None:
    written = written_at(facts, location)
    return Edit(written.span(0, 0), text) if written is not None else None


def put_behind(facts: SourceFacts, location: Location, text: str) -> Edit | None:
    written = written_at(facts, location)
    return Edit(written.span(len(written.text), len(written.text)), text) if written is not None else None


def put_around(facts: SourceFacts, location: Location, before: str, behind: str) -> list[Edit] | None:
    """`tf.cast(` and `, tf.float32)` around an expression, of which nothing is touched."""
    first, last = put_before(facts, location, before), put_behind(facts, location, behind)
    return [first, last] if first is not None and last is not None else None


def unwrapped(facts: SourceFacts, outer: Location, inner: Location) -> list[Edit] | None:
    """The edits that leave `a` of `f(a, b)`. None where a comment would be lost."""
    outside, inside = written_at(facts, outer), written_at(facts, inner)
    if outside is None or inside is None or not holds(outer, inner):
        return None
    before = replaced(facts, dataclasses.replace(outer, end_line=inner.line, end_column=inner.column), "")
    behind = replaced(facts, dataclasses.replace(outer, line=inner.end_line, column=inner.end_column), "")
    return [before, behind] if before is not None and behind is not None else None


def with_keyword(facts: SourceFacts, call: Location, name: str, text: str) -> Edit | None:
    """A call with this argument: put behind the others, or in the place of what it is given now."""
    written = written_at(facts, call)
    if written is None or written.arguments is None:
        return None
    given = written.named(name)
    if given is not None:
        return _replaced(written, given.value_start, given.end, text)
    arguments = written.arguments
    if any(argument.starred for argument in arguments) or not text:
        return None
    last = arguments[-1].end if arguments else written.tokens[written.opening or 0].end
    return Edit(written.span(last, last), f"{', ' if arguments else ''}{name}={text}")


def keyword_renamed(facts: SourceFacts, call: Location, name: str, new: str) -> Edit | None:
    """A call with an argument under another name."""
    written = written_at(facts, call)
    given = written.named(name) if written is not None else None
    return None if written is None or given is None else _replaced(written, given.start, given.start + len(name), new)


def without_keyword(facts: SourceFacts, call: Location, name: str) -> Edit | None:
    """A call without this argument, and without its comma."""
    written = written_at(facts, call)
    given = written.named(name) if written is not None else None
    return None if written is None or given is None else _without(written, given)


def overridden_keyword(facts: SourceFacts, call: Location, name: str, text: str) -> Edit | None:
    """`f(**{**settings, name: text})` of `f(**settings)`: other settings for this call, and the dict as it was."""
    written = written_at(facts, call)
    settings = [argument for argument in written.arguments or () if argument.is_mapping] if written is not None else []
    if written is None or len(settings) != 1:
        return None
    given = settings[0]
    return _replaced(written, given.start, given.end, f'**{{{written.text_of(given)}, "{name}": {text}}}')


def without_positional(facts: SourceFacts, call: Location, position: int) -> Edit | None:
    """A call without this argument; None where another positional one follows it."""
    written = written_at(facts, call)
    given = written.positional(position) if written is not None else None
    if written is None or given is None or written.positional(position + 1) is not None:
        return None
    return _without(written, given)


def callee_replaced(facts: SourceFacts, call: Location, text: str) -> Edit | None:
    """`g(…)` in the place of `f(…)`."""
    written = written_at(facts, call)
    if written is None or written.opening is None:
        return None
    return _replaced(written, 0, written.tokens[written.opening - 1].end, text)


def without_part(facts: SourceFacts, location: Location, part: str) -> Edit | None:
    """`a.c` of `a.part.c`; or of a call of it."""
    written = written_at(facts, location)
    if written is None:
        return None
    tokens = written.tokens[: written.opening] if written.opening is not None else written.tokens
    numbers = [number for number, token in enumerate(tokens) if token.is_name(part)]
    if len(numbers) != 1 or numbers[0] + 1 >= len(tokens) or tokens[numbers[0] + 1].text != ".":
        return None
    return _replaced(written, tokens[numbers[0]].start, tokens[numbers[0] + 1].end, "")


def argument_replaced(facts: SourceFacts, call: Location, name: str, position: int | None, text: str) -> Edit | None:
    """Another text for an argument that is given by its name or at this position."""
    written = written_at(facts, call)
    if written is None:
        return None
    given = written.named(name) or (written.positional(position) if position is not None else None)
    return _replaced(written, given.value_start, given.end, text) if given is not None else None


def without_call(facts: SourceFacts, call: Location, position: int = 0, *names: str) -> list[Edit] | None:
    """An argument in the place of the call that it is given to: `a` of `f(a)`."""
    inner = argument_at(facts, call, position, *names)
    return unwrapped(facts, call, inner) if inner is not None else None


def literal_replaced(facts: SourceFacts, location: Location, text: str) -> Edit | None:
    """Another text in the place of one that is written out: a string keeps its quotes. None for a name."""
    written = written_at(facts, location)
    if written is None or len(written.tokens) != 1 or written.tokens[0].kind != tokenize.STRING:
        return None
    match = re.fullmatch(r"('''|\"\"\"|'|\")([^'\"\\]*)\1", written.text)
    return Edit(location, f"{match[1]}{text}{match[1]}") if match is not None else None


def left_operand_kept(facts: SourceFacts, location: Location, operator: str) -> Edit | None:
    """The edit that leaves `a` of `a / b`. None where the operator occurs more than once."""
    written = written_at(facts, location)
    end = end_of_left_operand(written, operator) if written is not None else None
    return _replaced(written, end, len(written.text), "") if written is not None and end is not None else None


def dtype_named_instead(facts: SourceFacts, location: Location, dtype: str, instead: str) -> Edit | None:
    """Another dtype in an expression that names this one once, as a text or as a library's name."""
    written = written_at(facts, location)
    tokens = written.tokens if written is not None else ()
    named = [token for token in tokens if token.is_name(dtype) or token.text in (f'"{dtype}"', f"'{dtype}'")]
    if written is None or len(named) != 1:
        return None
    return _replaced(written, named[0].start, named[0].end, named[0].text.replace(dtype, instead))


def _without(written: Written, given: Argument) -> Edit | None:
    arguments = written.arguments or ()
    number = arguments.index(given)
    if number > 0:
        return _replaced(written, arguments[number - 1].end, given.end, "")
    if len(arguments) > 1:
        return _replaced(written, given.start, arguments[1].start, "")
    return _replaced(written, given.start, written.tokens[-1].start, "")


def _replaced(written: Written, start: int, end: int, text: str) -> Edit | None:
    part = Written(written.text[start:end], written.span(start, end))
    if "#" in part.text and part.holds_comment:
        return None
    return Edit(part.location, text)
