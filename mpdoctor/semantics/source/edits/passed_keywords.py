"""A constructor made to take `**kwargs` and to pass them on to the class above it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts
from mpdoctor.semantics.source.texts.syntax_trees import called, location_of, tree_of

KEYWORDS = "**kwargs"


def passing_keywords(facts: SourceFacts, constructor: FunctionFacts, given: frozenset[str]) -> list[Edit] | None:
    """The edits after which a constructor takes `**kwargs` and passes them on. `given`: the names of the keywords that
    will come. None where one of them would be passed twice, or where no single call of the constructor above is there
    to pass them on to."""
    definition = _definition(facts, constructor)
    above = _call_above(definition) if definition is not None else None
    if definition is None or above is None or definition.args.kwarg is not None:
        return None
    takes = definition.args
    taken = [*takes.posonlyargs, *takes.args, *takes.kwonlyargs, *([takes.vararg] if takes.vararg is not None else [])]
    said_above = {word.arg for word in above.keywords}
    if None in said_above or said_above & (given - {parameter.arg for parameter in taken}):
        return None
    defaults = [node for node in (*takes.defaults, *takes.kw_defaults) if node is not None]
    passed = [*above.args, *(word.value for word in above.keywords)]
    return [
        _put_behind(facts, [*taken, *defaults], taken[-1]),
        _put_behind(facts, passed) if passed else _put_in(facts, above),
    ]


def _definition(facts: SourceFacts, constructor: FunctionFacts) -> ast.FunctionDef | None:
    tree = tree_of(facts) if constructor.location.path == facts.path else None
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)) if tree is not None else ()
    place = constructor.location.line, "__init__"
    return next((node for node in functions if (node.lineno, node.name) == place and node.args.args), None)


def _call_above(definition: ast.FunctionDef) -> ast.Call | None:
    """The only `super().__init__(…)` of the function, if the function has no name `kwargs`; else None."""
    nodes = list(ast.walk(definition))
    calls = [node for node in nodes if isinstance(node, ast.Call) and called(node) == "__init__"]
    has_name = any(isinstance(node, ast.Name) and node.id == "kwargs" for node in nodes)
    return calls[0] if len(calls) == 1 and not has_name else None


def _put_behind(facts: SourceFacts, nodes: Sequence[ast.arg | ast.expr], last: ast.arg | None = None) -> Edit:
    """The edit that adds `**kwargs` behind the last of these nodes, and before a comma that may follow; on a line of
    its own where the `last` parameter has one."""
    places = [location_of(facts, node) for node in nodes]
    line, column = max((place.end_line, place.end_column) for place in places)
    space = _indentation_of_own_line(facts, location_of(facts, last), line, column) if last is not None else None
    separator = " " if space is None else f"\n{space}"
    return Edit(Location(facts.path, line, column, line, column), f",{separator}{KEYWORDS}")


def _indentation_of_own_line(facts: SourceFacts, begin: Location, end_line: int, end_column: int) -> str | None:
    """The indentation of a parameter that stands on a line alone, without a comment; None of any other."""
    text = facts.lines[begin.line - 1] if begin.line == end_line else ""
    space, rest = text[: begin.column - 1], text[end_column - 1 :]
    return space if space and space.isspace() and rest.strip() in ("", ",") else None


def _put_in(facts: SourceFacts, call: ast.Call) -> Edit:
    """The edit that puts `**kwargs` between the parentheses of a call that passes nothing."""
    place = location_of(facts, call)
    line, column = place.end_line, place.end_column - 1
    return Edit(Location(facts.path, line, column, line, column), KEYWORDS)
