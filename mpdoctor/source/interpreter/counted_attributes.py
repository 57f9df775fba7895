"""Attributes in which a program counts: `self.steps += 1`. What they hold at first is not what they hold later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.program.context import Context
from mpdoctor.program.values import Known, Unknown, Value
from mpdoctor.source.interpreter.call_inlining import SETTING_UP
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined
from mpdoctor.source.syntax_nodes import nodes_in

_COUNTING = (ast.Add, ast.Sub)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def first_or_later(state: State, name: str, value: Value | None) -> Value | None:
    """The number of an attribute, or an unknown one where the program may have counted on before it comes here."""
    if not isinstance(value, Known) or type(value.value) not in (int, float) or _is_first_time(state.context):
        return value
    return joined((value, Unknown(value.location))) if name in _counted_in(state.module.source.tree) else value


def _is_first_time(context: Context) -> bool:
    """Whether code runs before anything can have been counted: while an object is set up, or in no loop of a program
    that comes here by itself."""
    function = context.function
    if function is not None and function.name in SETTING_UP:
        return True
    return not context.loops and context.reached and (function is None or bool(context.callers))


def _counted_in(tree: ast.Module) -> frozenset[str]:
    """The attributes that a file's functions count up or down, but for those that set up an object; remembered on the
    tree."""
    names = getattr(tree, "counted", None)
    if names is None:
        names = frozenset(_counted(tree.body))
        tree.counted = names  # type: ignore[attr-defined]
    assert isinstance(names, frozenset)
    return names


def _counted(statements: list[ast.stmt]) -> Iterator[str]:
    left_out = {
        id(inner)
        for node in nodes_in(statements)
        if isinstance(node, _FUNCTIONS) and node.name in SETTING_UP
        for inner in nodes_in(node.body)
    }
    for node in nodes_in(statements):
        if id(node) not in left_out:
            yield from _counted_by(node)


def _counted_by(node: ast.AST) -> Iterator[str]:
    """The attribute that a statement counts up or down: `self.steps += 1`, `self.steps = self.steps + 1`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, _COUNTING) and isinstance(node.target, ast.Attribute):
        yield node.target.attr
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.BinOp):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        before = node.value.left
        for target in targets if isinstance(node.value.op, _COUNTING) and isinstance(before, ast.Attribute) else ():
            if isinstance(target, ast.Attribute) and ast.unparse(target) == ast.unparse(before):
                yield target.attr
