"""The arguments of a call: evaluated, and `*rest` and `**rest` spread out as far as what they hold is known."""

from __future__ import annotations

import ast

from mpdoctor.program.values import Collection, Item, Known, Value
from mpdoctor.source.interpreter.containers import contents_of, spread_out
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Closure, Keywords


def evaluate_positional(
    state: State, node: ast.Call, called: Closure | None, bound: int
) -> tuple[tuple[Value, ...], bool]:
    """The positional arguments, and whether there may be more. Where a function of the user's own is called, of whose
    parameters `bound` are given already, `*rest` holds as many as it still needs: `loss_of(*model(x), y)`."""
    starred = [argument for argument in node.args if isinstance(argument, ast.Starred)]
    if called is None or len(starred) != 1:
        args, is_open, _ = spread_out(state, node.args)
        return args, is_open
    needed = _needed(called, bound, node)
    found: list[Value] = []
    is_open = is_known = False
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            found.append(evaluate(state, argument))
            continue
        rest, before = contents_of(evaluate(state, argument.value)), len(found)
        if isinstance(rest, Collection) and rest.kind in ("list", "tuple"):
            found.extend(rest.items)
            is_open, is_known = rest.open, True
        elif needed is not None:
            count, place, is_open, is_known = needed - len(node.args) + 1, state.place(argument), True, True
            found.extend(Item(place, rest, Known(place, position)) for position in range(count))
    # Whose parameters the arguments behind `*rest` are is known only where its number is.
    return (tuple(found), is_open) if is_known else (tuple(found[:before]), True)


def _needed(called: Closure, bound: int, node: ast.Call) -> int | None:
    """How many positional arguments a function needs that have no default; None where that is not certain."""
    arguments = called.node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    given = {keyword.arg for keyword in node.keywords}
    if arguments.vararg is not None or None in given:
        return None
    needed = [name for name in names[bound : len(names) - len(arguments.defaults)] if name not in given]
    return len(needed) if len(needed) >= len(node.args) else None


def evaluate_keywords(state: State, nodes: list[ast.keyword]) -> tuple[Keywords, bool]:
    found: list[tuple[str, Value]] = []
    is_open = False
    for node in nodes:
        value = evaluate(state, node.value)
        if node.arg is not None:
            found.append((node.arg, value))
        elif isinstance(value, Collection) and value.kind == "dict":
            is_open = is_open or value.open
            for key, item in zip(value.keys, value.items, strict=True):
                if isinstance(key, Known) and isinstance(key.value, str):
                    found.append((key.value, item))
        else:
            is_open = True
    return tuple(found), is_open
