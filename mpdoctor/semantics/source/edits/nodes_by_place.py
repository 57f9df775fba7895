"""Index of a file's syntax nodes by their place: a rule may ask for a node for each of ten thousand findings."""

from __future__ import annotations

import ast
from functools import lru_cache

from mpdoctor.facts.location import Location
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.syntax_trees import location_of, tree_of

Places = dict[tuple[int, int], list[ast.expr | ast.stmt]]


def nodes_at(facts: SourceFacts, place: Location) -> list[ast.expr | ast.stmt]:
    """The expressions and statements that stand exactly there, from the outside in."""
    if place.path != facts.path or not 0 < place.line <= len(facts.lines):
        return []
    offset = len(facts.lines[place.line - 1][: place.column - 1].encode(errors="surrogatepass"))
    return [node for node in _nodes_by_place(facts).get((place.line, offset), ()) if location_of(facts, node) == place]


@lru_cache(maxsize=4)
def _nodes_by_place(facts: SourceFacts) -> Places:
    """The nodes by their line and byte offset."""
    nodes: Places = {}
    tree = tree_of(facts)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.expr, ast.stmt)):
            nodes.setdefault((node.lineno, node.col_offset), []).append(node)
    return nodes
