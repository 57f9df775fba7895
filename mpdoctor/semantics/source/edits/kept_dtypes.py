"""Edits that keep in float32 what a variable sums up over many steps: moving averages, the moments of an optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import dtype_named_instead, replaced
from mpdoctor.semantics.source.texts.syntax_trees import called, location_of, tree_of

MAKING = {"cast": 1, "zeros": 1, "ones": 1, "zeros_like": 1, "ones_like": 1}  # and the place of the dtype
Edits = tuple[Edit, ...]


def average_in_float32(
    facts: SourceFacts, update: Location, made_in: SourceFacts, line: int
) -> tuple[str, Edits] | None:
    """(a title, the edits): float32 for the variable of a moving average, which `line` of `made_in` makes, and in the
    casts by name of the function that updates it."""
    edits = list(_variable_in_float32(made_in, line))
    if edits:
        edits += _named_in_float32(facts, _around(facts, update, ast.FunctionDef))
    return _titled("Keep the moving average in float32", edits)


def class_kept_in_float32(facts: SourceFacts, inside: Location) -> tuple[str, Edits] | None:
    """(a title, the edits): float32 for each 16-bit dtype that the class around this line names."""
    around = _around(facts, inside, ast.ClassDef)
    name = around.name if isinstance(around, ast.ClassDef) else ""
    return _titled(f"Write float32 for the 16-bit dtypes of `{name}`", _named_in_float32(facts, around))


def _titled(title: str, edits: Iterable[Edit]) -> tuple[str, Edits] | None:
    made = tuple(dict.fromkeys(edits))
    return (title, made) if made else None


def _variable_in_float32(facts: SourceFacts, line: int) -> Iterator[Edit]:
    """The dtypes with which the calls on a line make a variable, and what it starts from: by name, or of another
    thing."""
    nodes = ast.walk(tree_of(facts) or ast.Module([], []))
    for node in (node for node in nodes if isinstance(node, ast.Call) and node.lineno == line):
        place = MAKING.get(called(node))
        given = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
        given += node.args[place : place + 1] if place is not None else []
        for dtype in given:
            by_name = list(_named_in_float32(facts, dtype))
            instead = replaced(facts, location_of(facts, dtype), '"float32"')
            yield from by_name or ([instead] if instead is not None else [])


def _named_in_float32(facts: SourceFacts, around: ast.AST | None) -> Iterator[Edit]:
    """float32 for `tf.float16`, `"float16"` and the like."""
    for node in ast.walk(around) if around is not None else ():
        name = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else ""
        if isinstance(node, ast.Attribute | ast.Constant) and name in HALF:
            edit = dtype_named_instead(facts, location_of(facts, node), str(name), "float32")
            if edit is not None:
                yield edit


def _around(facts: SourceFacts, place: Location, kind: type[ast.AST]) -> ast.AST | None:
    """The innermost function, or class, around a place."""
    nodes = (node for node in ast.walk(tree_of(facts) or ast.Module([], [])) if isinstance(node, kind))
    around = [
        node
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno <= place.line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)
