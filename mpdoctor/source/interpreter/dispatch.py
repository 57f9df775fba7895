"""Evaluation of any expression and execution of any block: the function for a node is looked up by its type."""

from __future__ import annotations

import ast

from mpdoctor.program.values import Unknown, Value
from mpdoctor.source.interpreter.state.interpreter_state import State

DEEPEST = 250  # nested expressions and statements; Python's own parser stops not far beyond


def evaluate(state: State, node: ast.expr) -> Value:
    """The value of an expression; records the events of evaluating it. Below `DEEPEST` nested nodes it is unknown."""
    if state.depth > DEEPEST:
        return Unknown(state.place(node))
    state.depth += 1
    value = state.expressions[type(node)](state, node)
    state.depth -= 1
    return value


def execute_block(state: State, body: list[ast.stmt]) -> bool:
    """Execute statements one after the other. Whether the program goes on behind them: False after return, raise, break
    and continue."""
    if state.depth > DEEPEST:
        return True
    state.depth += 1
    before, goes_on = state.context, True
    for statement in body:
        state.end_if_enough()
        if state.walk.call_stack:
            state.walk.inlined_statements += 1
        if not state.statements[type(statement)](state, statement):
            goes_on = False
            break
    state.context = before.still_inside(state.context)
    state.depth -= 1
    return goes_on
