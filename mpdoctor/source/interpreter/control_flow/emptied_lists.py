"""Loops that take one thing after another from a list until it is empty: `while queue: x = queue.pop(0)(x)`."""

from __future__ import annotations

import ast

from mpdoctor.program.values import Collection, Value
from mpdoctor.source.interpreter.control_flow.loop_rounds import MOST_CALLED_IN_TURN
from mpdoctor.source.interpreter.dispatch import evaluate, execute_block
from mpdoctor.source.interpreter.state.events import Events
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.syntax_nodes import nodes_in

_TAKING = ("pop", "popleft")
_NOT_IN_EACH_ROUND = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.FunctionDef)


def execute_until_empty(state: State, node: ast.While) -> bool | None:
    """Whether the program goes on behind a loop that empties a list of few things, whose rounds are executed one by
    one; None of every other loop, of which nothing is executed."""
    emptied = _emptied_by(node)
    held = None if emptied is None else _value_of(state, emptied)
    if emptied is None or not isinstance(held, Collection) or not 0 < len(held.items) <= MOST_CALLED_IN_TURN:
        return None
    for _ in held.items:
        left = _value_of(state, emptied)
        if not isinstance(left, Collection) or left.open or left.uniform or left.kind != "list" or not left.items:
            break
        evaluate(state, node.test)
        if not execute_block(state, node.body):
            return False
    return execute_block(state, node.orelse)


def _value_of(state: State, node: ast.expr) -> Value:
    events, state.events = state.events, Events()  # they are recorded where the loop is executed
    value = evaluate(state, node)
    state.events = events
    return value


def _emptied_by(node: ast.While) -> ast.expr | None:
    """The list that a loop goes round for, and takes one thing from in each round: a name, or an attribute; None where
    there is none, or where the loop does anything else with it. Kept on the node."""
    if not hasattr(node, "emptied"):
        node.emptied = _read_emptied(node)  # type: ignore[attr-defined]
    emptied = node.emptied  # type: ignore[attr-defined]
    assert emptied is None or isinstance(emptied, ast.expr)
    return emptied


def _read_emptied(node: ast.While) -> ast.expr | None:
    emptied = _asked_for(node.test)
    if not isinstance(emptied, (ast.Name, ast.Attribute)):
        return None
    inside, text = nodes_in(node.body), ast.unparse(emptied)
    if any(isinstance(inner, (ast.Break, ast.Continue)) for inner in inside):
        return None
    always = nodes_in([statement for statement in node.body if not isinstance(statement, _NOT_IN_EACH_ROUND)])
    taking = [inner for inner in always if _takes_from(inner, text)]
    named = [inner for inner in inside if isinstance(inner, type(emptied)) and ast.unparse(inner) == text]
    return emptied if len(taking) == len(named) == 1 else None


def _asked_for(test: ast.expr) -> ast.expr:
    """The list in `while queue:`, `while len(queue):` and `while len(queue) > 0:`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Gt, ast.NotEq)):
        right = test.comparators[0]
        test = test.left if isinstance(right, ast.Constant) and right.value == 0 else test
    is_length = isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "len"
    return test.args[0] if is_length and isinstance(test, ast.Call) and len(test.args) == 1 else test


def _takes_from(node: ast.AST, text: str) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _TAKING:
        return False
    return ast.unparse(node.func.value) == text
