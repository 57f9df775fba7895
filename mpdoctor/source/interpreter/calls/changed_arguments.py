"""Lists and dicts of the caller's that a function changes: `def note(losses, loss): losses.append(loss)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.program.values import Collection, Value, options
from mpdoctor.source.interpreter.changed_containers import put_back
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Closure, Keywords
from mpdoctor.source.syntax_nodes import nodes_in


def put_back_arguments(
    state: State, call: ast.Call, closure: Closure, args: tuple[Value, ...], keywords: Keywords, after: dict[str, Value]
) -> None:
    """Give the caller's lists and dicts the contents that the called function has given them. `args`: with the object
    of a method; `after`: the function's own names when it has run."""
    for parameter, written, given in _handed_over(call, closure, args, keywords):
        held = after.get(parameter)
        if isinstance(given, Collection) and held is not None and held is not given:
            choices = [choice for choice in options(held) if choice is not given]
            if all(id(choice) in state.walk.changed for choice in choices) and not _is_assigned(closure, parameter):
                put_back(state, written, given, held)


def _handed_over(
    call: ast.Call, closure: Closure, args: tuple[Value, ...], keywords: Keywords
) -> Iterator[tuple[str, ast.expr, Value | None]]:
    """(parameter, the expression for it, its value) of a call that unpacks nothing by `*`."""
    parameters = [*closure.node.args.posonlyargs, *closure.node.args.args]
    bound, named = len(args) - len(call.args), dict(keywords)
    if bound >= 0 and not any(isinstance(written, ast.Starred) for written in call.args):
        for parameter, written, given in zip(parameters[bound:], call.args, args[bound:], strict=False):
            yield parameter.arg, written, given
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value, named.get(keyword.arg)


def _is_assigned(closure: Closure, name: str) -> bool:
    """Whether the function gives the name another object, perhaps a copy."""
    body = closure.node.body
    return isinstance(body, list) and any(
        isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store)
        for inner in nodes_in(body)
    )
