"""The test of an `if` rules out constants: in each arm a name keeps only those of its possible constants for which the
test leads there (`if name == "…":`, `if name in table:`, `if name.endswith("…"):`)."""

from __future__ import annotations

import ast

from mpdoctor.program.values import MISSING, Either, Known, Value, certainly_known, options
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.state.events import Events
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined

# What changes nothing where it is evaluated once more.
_PLAIN = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Subscript, ast.Slice, ast.Tuple, ast.List)
_PARTS = (ast.expr_context, ast.cmpop, ast.boolop, ast.unaryop, ast.Set)
_OF_TEXTS = frozenset(("startswith", "endswith", "lower", "upper", "strip", "split", "replace", "isdigit", "keys"))
_OF_NUMBERS = frozenset(("isinf", "isnan", "isfinite"))
_OF_PYTHON = frozenset(("len", "str", "isinstance", "bool"))


def names_of_several(state: State, test: ast.expr) -> list[str]:
    """The names in a test that may be one of several constants."""
    names = state.scope.names
    return list(dict.fromkeys(node.id for node in _names_in(test) if _may_be_several(names.get(node.id))))


def leave_out(state: State, test: ast.expr, taken: bool, several: list[str]) -> dict[str, Value]:
    """Remove from the names in a test that may be one of `several` constants those for which it does not lead to this
    arm.

    Returns the earlier values of these names, by name."""
    names, before = state.scope.names, dict[str, Value]()
    for name in several:
        choices = options(names[name])
        left = [choice for choice in choices if _may_come_here(state, test, taken, name, choice)]
        if 0 < len(left) < len(choices):
            before[name] = names[name]
            names[name] = joined(left)
    return before


def _may_be_several(value: Value | None) -> bool:
    return isinstance(value, Either) and any(isinstance(choice, Known) for choice in value.options)


def _may_come_here(state: State, test: ast.expr, taken: bool, name: str, choice: Value) -> bool:
    if not isinstance(choice, Known):
        return True
    names, events, context = state.scope.names, state.events, state.context
    state.scope.names, state.events = {**names, name: choice}, Events()
    answer = certainly_known(evaluate(state, test))
    state.scope.names, state.events, state.context = names, events, context
    return answer is MISSING or bool(answer) is taken


def _names_in(test: ast.expr) -> list[ast.Name]:
    """The names in a test that only compares; [] if evaluating it again might change something. Kept on the node."""
    names: list[ast.Name] | None = getattr(test, "asked_about", None)
    if names is None:
        calls = [node for node in ast.walk(test) if isinstance(node, ast.Call) and _is_plain_call(node)]
        left_out = {id(node) for call in calls for node in (call, call.func)}
        rest = [node for node in ast.walk(test) if not isinstance(node, _PARTS) and id(node) not in left_out]
        called = [call.func.value for call in calls if isinstance(call.func, ast.Attribute)]
        is_plain = all(isinstance(node, _PLAIN) for node in rest)
        names = [node for node in (*rest, *called) if isinstance(node, ast.Name)] if is_plain else []
        test.asked_about = names  # type: ignore[attr-defined]
    return names


def _is_plain_call(node: ast.Call) -> bool:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _OF_TEXTS | _OF_NUMBERS and not node.keywords
    return isinstance(node.func, ast.Name) and node.func.id in _OF_PYTHON
