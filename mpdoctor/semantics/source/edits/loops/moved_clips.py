"""Moves a statement that clips gradients after the branch that unscales them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.statements import line_behind, without_statement
from mpdoctor.semantics.source.loops.gradients import UNSCALING
from mpdoctor.semantics.source.texts.syntax_trees import called, location_of, tree_of


def clipped_behind_branch(facts: SourceFacts, clip: Location) -> list[Edit] | None:
    """The edits that move `gradients = clip(gradients)` behind the `if mixed: gradients = unscale(gradients)` that
    directly follows it. None for other statements: one in between may use the norm."""
    for block in _blocks(tree_of(facts)):
        for first, second in pairwise(block):
            if _holds(first, clip) and isinstance(second, ast.If) and _are_clip_and_unscaling(first, second):
                return _moved(facts, first, second)
    return None


def _moved(facts: SourceFacts, clip: ast.stmt, branch: ast.If) -> list[Edit] | None:
    place = location_of(facts, clip)
    if place.line != place.end_line:
        return None
    text = facts.lines[place.line - 1][place.column - 1 : place.end_column - 1]
    without, last = without_statement(facts, place), location_of(facts, branch.body[-1])
    behind = line_behind(facts, last, text)
    if without is None or behind is None:
        return None
    indent = facts.lines[place.line - 1][: place.column - 1]
    return [without, Edit(behind.location, f"\n{indent}{text}")]


def _blocks(tree: ast.AST | None) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree) if tree is not None else ():
        body = getattr(node, "body", None)
        if isinstance(body, list):
            yield body


def _holds(statement: ast.stmt, place: Location) -> bool:
    return statement.lineno <= place.line <= (statement.end_lineno or statement.lineno)


def _name_given(statement: ast.stmt) -> str:
    """`gradients` of `gradients = …` and of `gradients, norm = …`; "" of anything else."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    (given,) = statement.targets
    first = given.elts[0] if isinstance(given, ast.Tuple) and given.elts else given
    return first.id if isinstance(first, ast.Name) else ""


def _are_clip_and_unscaling(clip: ast.stmt, branch: ast.If) -> bool:
    """Whether the one makes a name of the same name, and the other is `if …: name = opt.get_unscaled_gradients(name)`
    and no more."""
    name = _name_given(clip)
    if not name or not isinstance(clip, ast.Assign) or not _reads(clip.value, name):
        return False
    if branch.orelse or len(branch.body) != 1:
        return False
    (inner,) = branch.body
    if not isinstance(inner, ast.Assign) or _name_given(inner) != name or isinstance(inner.targets[0], ast.Tuple):
        return False
    return isinstance(inner.value, ast.Call) and called(inner.value) == UNSCALING and _reads(inner.value, name)


def _reads(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))
