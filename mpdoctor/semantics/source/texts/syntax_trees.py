"""The syntax tree of a source file, its classes, and the places of its nodes."""

from __future__ import annotations

import ast
from functools import lru_cache

from mpdoctor.facts.location import Location, lines_of
from mpdoctor.program.source_facts import SourceFacts

Places = dict[tuple[int, int], list[ast.expr | ast.stmt]]


@lru_cache(maxsize=16)
def tree_of(facts: SourceFacts) -> ast.Module | None:
    """The file's syntax tree; None where Python can't read it, or prompts that were taken away have moved columns."""
    text = facts.text if facts.program_text is None else facts.program_text
    lines = zip(lines_of(facts.text), lines_of(text), strict=True) if text is not facts.text else ()
    if any(kept and len(kept) < len(line) and line.endswith(kept) for line, kept in lines):
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def class_around(facts: SourceFacts, line: int) -> ast.ClassDef | None:
    """The innermost class whose definition holds this line."""
    tree = tree_of(facts)
    classes = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    around = [definition for definition in classes if _begins(definition) <= line <= (definition.end_lineno or 0)]
    return max(around, key=lambda definition: definition.lineno, default=None)


def _begins(definition: ast.ClassDef) -> int:
    return min([definition.lineno, *(decorator.lineno for decorator in definition.decorator_list)])


def called(call: ast.Call) -> str:
    """The last part of the name that is called; "" where it is none."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def location_of(facts: SourceFacts, node: ast.expr | ast.stmt | ast.arg) -> Location:
    """The place of a node. Its columns count characters; those of the tree count bytes."""

    def column(line: int, offset: int) -> int:
        text = facts.lines[line - 1]
        return (offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))) + 1

    end_line = node.end_lineno or node.lineno
    return Location(
        facts.path,
        node.lineno,
        column(node.lineno, node.col_offset),
        end_line,
        column(end_line, node.end_col_offset or 0),
    )


def nodes_at(facts: SourceFacts, place: Location) -> list[ast.expr | ast.stmt]:
    """The expressions and statements that stand exactly there, from the outside in."""
    if place.path != facts.path or not 0 < place.line <= len(facts.lines):
        return []
    offset = len(facts.lines[place.line - 1][: place.column - 1].encode(errors="surrogatepass"))
    return [node for node in _nodes_by_place(facts).get((place.line, offset), ()) if location_of(facts, node) == place]


@lru_cache(maxsize=4)
def _nodes_by_place(facts: SourceFacts) -> Places:
    """The nodes by their line and byte offset: a rule may ask for a node for each of ten thousand findings."""
    nodes: Places = {}
    tree = tree_of(facts)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.expr, ast.stmt)):
            nodes.setdefault((node.lineno, node.col_offset), []).append(node)
    return nodes
