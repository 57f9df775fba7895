"""How rules name a program's values: by their source text where it is available."""

from __future__ import annotations

import ast

from mpdoctor.facts.location import Location, location_in_cell
from mpdoctor.program.command_line import is_from_command_line
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Attribute, Known, Value, options

LONGEST = 60


def text_at(facts: SourceFacts, location: Location) -> str:
    """The source text of a location on one line, "" where it lies in no file at hand or is too long."""
    lines = facts.lines_of(location.path)
    if not 0 < location.line <= len(lines) or not location.column or location.end_line != location.line:
        return ""
    text = lines[location.line - 1][location.column - 1 : location.end_column - 1].strip()
    return text if len(text) <= LONGEST else ""


def named_default(facts: SourceFacts, number: Value) -> str:
    """ ", the default of `args.eps`," behind a number that an option or a parameter stands at by default; "" behind any
    other."""
    parameters = [choice.name for choice in options(number) if isinstance(choice, Parameter)]
    asked = (choice for choice in options(number) if isinstance(choice, (Api, Attribute)))
    settings = [text_at(facts, choice.location) for choice in asked if is_from_command_line(choice)]
    name = next(iter((*parameters, *settings)), "")
    return f", the default of `{name}`," if name else ""


def quoted(facts: SourceFacts, location: Location, shown: Location) -> str:
    """ "`tf.zeros(4)` (line 14)", the line where it is none of those that a finding shows; "" without a text."""
    text = text_at(facts, location)
    if not text:
        return ""
    is_shown = location.path == shown.path and shown.line <= location.line <= max(shown.line, shown.end_line)
    return f"`{text}`" if is_shown else f"`{text}` ({place_of(facts, location, shown)})"


def expression_at(facts: SourceFacts, location: Location) -> ast.expr | None:
    """The expression at a location, as a syntax node; None where it is not at hand."""
    try:
        return ast.parse(text_at(facts, location), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def receiver_text(facts: SourceFacts, call: Call) -> str:
    """`self.optimizer` of `self.optimizer.apply_gradients(…)`, as written; "optimizer" where that is not at hand."""
    lines = facts.lines_of(call.location.path)
    number = call.location.line
    line = lines[number - 1][call.location.column - 1 :] if 0 < number <= len(lines) else ""
    receiver, dot, _ = line.partition("." + call.method)
    return receiver if dot and len(receiver) <= LONGEST else "optimizer"


def place_of(facts: SourceFacts, location: Location, seen_from: Location) -> str:
    """ "line 5", with the cell of a notebook, and with the path where it lies in another file than `seen_from`."""
    here = location_in_cell(location, facts.cells if location.path == facts.path else ())
    path = [location.path] if location.path != seen_from.path else []
    cell = [f"cell {here.cell}"] if here.cell else []
    return ", ".join((*path, *cell, f"line {here.line}"))


def name_of_optimizer(value: Value | None) -> str:
    """How to call an optimizer: "Adam", the name of the user's class, "adam"; "the optimizer inside" where it is not
    known."""
    names = {_one_name(option) for option in options(value)}
    return names.pop() if len(names) == 1 else "the optimizer inside"


def _one_name(value: Value) -> str:
    own = class_of(value)
    if own is not None:
        return own.name
    if isinstance(value, Call) and value.method[:1].isupper():
        return value.method
    if isinstance(value, Known) and isinstance(value.value, str):
        return f'"{value.value}"'
    return "the optimizer inside"


def listed(names: list[str], most: int = 4) -> str:
    """ "a", "a and b", "a, b and c", "a, b, c, d and 3 more"."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
