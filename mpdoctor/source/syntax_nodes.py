"""The nodes of syntax trees, one after the other: `ast.walk` takes twice as long, and every function is gone over."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

SETTING_UP = ("__init__", "build", "setup", "__post_init__")  # methods that set up an object
# Fields that never hold what is looked for: operators, contexts, names and constants.
_PLAIN = frozenset(("ctx", "op", "ops", "id", "attr", "arg", "module", "names", "level", "kind", "type_comment"))
_FUNCTIONS, _COUNTING = (ast.FunctionDef, ast.AsyncFunctionDef), (ast.Add, ast.Sub)


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


def extends_list(node: ast.AST) -> bool:
    """Whether it is `blocks += [Dense(width)]`, which changes a list in place."""
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.value, ast.List)


def attributes_counted(statements: list[ast.stmt]) -> frozenset[str]:
    """The attributes that functions count up or down, `self.steps += 1`, or turn on or off, `self.is_warm = True`, but
    for those that set up an object."""
    nodes = nodes_in(statements)
    setting_up = (node.body for node in nodes if isinstance(node, _FUNCTIONS) and node.name in SETTING_UP)
    left_out = {id(inner) for body in setting_up for inner in nodes_in(body)}
    return frozenset(name for node in nodes if id(node) not in left_out for name in _counted_by(node))


def _counted_by(node: ast.AST) -> Iterator[str]:
    """The attribute that a statement counts up or down, or turns on or off: `self.steps += 1`, `self.steps =
    self.steps + 1`, `self.is_warm = True`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, _COUNTING) and isinstance(node.target, ast.Attribute):
        yield node.target.attr
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, (ast.BinOp, ast.Constant)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (
            target.attr
            for target in targets
            if isinstance(target, ast.Attribute) and _is_counted_or_turned(node.value, target)
        )


def _is_counted_or_turned(value: ast.BinOp | ast.Constant, target: ast.Attribute) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, bool)
    return isinstance(value.op, _COUNTING) and ast.unparse(value.left) == ast.unparse(target)


def nodes_of_own_body(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[ast.AST]:
    """The nodes of a function's own body, without those of functions and classes inside it."""
    waiting: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    while waiting:
        inner = waiting.pop()
        yield inner
        if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(inner))
