"""Edits of statements that clip gradients."""

from __future__ import annotations

import ast

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import replaced
from mpdoctor.semantics.source.edits.statements import statement_at, without_statement
from mpdoctor.semantics.source.edits.written import written_at


def without_clipping(facts: SourceFacts, clip: Location) -> Edit | None:
    """`gradients = tape.gradient(…)` in the place of `gradients, _ = clip_by_global_norm(tape.gradient(…), 1.0)` and of
    `gradients = [clip(g) for g in tape.gradient(…)]`; nothing where the name would be given to itself. None of other
    statements, and where the norm is kept."""
    statement, call = statement_at(facts, clip), written_at(facts, clip)
    if statement is None or call is None or statement.holds_comment:
        return None
    try:
        assign = ast.parse(statement.text).body[0]
    except (SyntaxError, ValueError, IndexError):
        return None
    if not isinstance(assign, ast.Assign) or len(assign.targets) != 1:
        return None
    name = _name_of(assign.targets[0])
    unclipped = _unclipped(assign.value, call.text)
    if name is None or unclipped is None:
        return None
    if unclipped == name:
        return without_statement(facts, clip)
    return replaced(facts, statement.location, f"{name} = {unclipped}")


def _name_of(target: ast.expr) -> str | None:
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        gradients, norm = target.elts
        return _name_of(gradients) if isinstance(norm, ast.Name) and norm.id == "_" else None
    return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute) else None


def _unclipped(value: ast.expr, clip: str) -> str | None:
    """What the statement clips, as it is written but for blanks."""
    same = ast.unparse(ast.parse(clip, mode="eval"))
    if isinstance(value, ast.Call) and ast.unparse(value) == same and value.args:
        return ast.unparse(value.args[0])
    if not isinstance(value, ast.ListComp) or len(value.generators) != 1:
        return None
    (each,) = value.generators
    is_all = isinstance(each.target, ast.Name) and not each.ifs
    element = value.elt
    if is_all and isinstance(element, ast.Call) and ast.unparse(element) == same and element.args:
        return ast.unparse(each.iter) if ast.unparse(element.args[0]) == ast.unparse(each.target) else None
    return None
