"""Edits that move a statement up, ahead of another one in the same block."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.statements import logical_line_at
from mpdoctor.semantics.source.texts.syntax_trees import tree_of
from mpdoctor.semantics.source.texts.written import lines_of_cell

Block = list[ast.stmt]
BLOCKS = ("body", "orelse", "finalbody")


def ahead_of(facts: SourceFacts, call: Location, others: Iterable[Iterable[Location]]) -> list[Edit] | None:
    """The edits that move a statement, the call alone with an `if` that holds nothing else, ahead of the first
    statement of its block in which one of `others` happens, each a chain of calls. None where one of them happens
    elsewhere, or where something that the statement uses changes in between."""
    tree = tree_of(facts)
    place = _block_of(tree, call) if tree is not None else None
    if place is None:
        return None
    block, number = place
    earlier = block[:number]
    firsts = [_first_in(facts, earlier, chain) for chain in others]
    if not firsts or any(first is None for first in firsts):
        return None
    first = min(filter(None, firsts), key=lambda statement: statement.lineno)
    between = earlier[earlier.index(first) :]
    if _read_in(block[number]) & set().union(*map(_bound_in, between)):
        return None
    return _moved(facts, block[number], first, block[number - 1])


def _block_of(tree: ast.Module, call: Location) -> tuple[Block, int] | None:
    """The block that holds the statement to move, and the statement's number in it."""
    blocks = [block for node in ast.walk(tree) for block in _blocks(node)]
    for block in blocks:
        for number, statement in enumerate(block):
            if _is_call_at(statement, call) or _is_only_in_if(statement, call):
                return block, number
    return None


def _blocks(node: ast.AST) -> Iterator[Block]:
    for name in BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list) and not (isinstance(node, ast.If) and _is_only_in_block(node)):
            yield block


def _is_only_in_block(node: ast.If) -> bool:
    return len(node.body) == 1 and not node.orelse


def _is_only_in_if(statement: ast.stmt, call: Location) -> bool:
    return isinstance(statement, ast.If) and _is_only_in_block(statement) and _is_call_at(statement.body[0], call)


def _is_call_at(statement: ast.stmt, call: Location) -> bool:
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return is_call and (statement.lineno, statement.end_lineno) == (call.line, call.end_line)


def _first_in(facts: SourceFacts, statements: Block, chain: Iterable[Location]) -> ast.stmt | None:
    """The statement in which the chain passes through this block."""
    lines = [place.line for place in chain if place.path == facts.path]
    return next(
        (one for one in statements if any(one.lineno <= line <= (one.end_lineno or one.lineno) for line in lines)), None
    )


def _read_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _bound_in(statement: ast.stmt) -> set[str]:
    """The names that a statement binds, or whose objects it changes in part."""
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _moved(facts: SourceFacts, statement: ast.stmt, first: ast.stmt, before: ast.stmt) -> list[Edit] | None:
    """The lines of a statement, and the comments right above it, in front of another one and the comments above that.
    `before`: what stands in front of it now."""
    line, last = logical_line_at(facts, statement.lineno), logical_line_at(facts, statement.end_lineno or 0)
    target = logical_line_at(facts, first.lineno)
    cells = {lines_of_cell(facts, number) for number in (first.lineno, statement.lineno, last.end if last else 0)}
    if line is None or last is None or target is None or line.shared or last.shared or target.shared or len(cells) > 1:
        return None
    start = _with_comments(facts, line.start, (before.end_lineno or before.lineno) + 1)
    place = _with_comments(facts, target.start, 1)
    text = facts.lines[start - 1 : last.end]
    is_apart = not facts.lines[start - 2].strip()
    end = last.end + (is_apart and last.end < len(facts.lines) and not facts.lines[last.end].strip())
    if end >= len(facts.lines):
        return None
    put_in = "".join(f"{line}\n" for line in text) + ("\n" if is_apart else "")
    return [
        Edit(Location(facts.path, place, 1, place, 1), put_in),
        Edit(Location(facts.path, start, 1, end + 1, 1), ""),
    ]


def _with_comments(facts: SourceFacts, line: int, least: int) -> int:
    """The first of the comments that stand right above a line, none of them above another one."""
    while line > least and facts.lines[line - 2].lstrip().startswith("#"):
        line -= 1
    return line
