"""The nodes of syntax trees, one after the other: `ast.walk` takes twice as long, and every function is gone over."""

from __future__ import annotations

import ast
from collections.abc import Iterable

# Fields that never hold what is looked for: operators, contexts, names and constants.
_PLAIN = frozenset(("ctx", "op", "ops", "id", "attr", "arg", "module", "names", "level", "kind", "type_comment"))


def nodes_in(roots: Iterable[ast.AST]) -> list[ast.AST]:
    """The roots and all nodes below them, those nearest to a root first; without operators and contexts, and without
    what import statements, `global` and `nonlocal` name."""
    nodes = [*roots]
    for node in nodes:  # which grows
        for field in node._fields if not isinstance(node, ast.Constant) else ():
            held = None if field in _PLAIN else getattr(node, field, None)
            if isinstance(held, ast.AST):
                nodes.append(held)
            elif isinstance(held, list):
                nodes += [part for part in held if isinstance(part, ast.AST)]
    return nodes
