"""Exceptions that the script catches itself, recorded with the line of their `except`.

A script that prints an exception and goes on often builds no model or trains nothing because of it."""

from __future__ import annotations

import ast
import builtins
import sys
from typing import TYPE_CHECKING, Iterator

from mpdoctor.examiner.failures.failure import failure_from_exception
from mpdoctor.facts.failure import CaughtFacts
from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import FITTING

if TYPE_CHECKING:
    from types import CodeType


_NAME = "__mpdoctor_caught__"
_TRAINING = {*FITTING, "apply_gradients", "minimize"}
_MOST_KEPT = 50
_caught: list[CaughtFacts] = []


def compiled(tree: ast.Module, path: str) -> CodeType:
    """The script, with a call at the beginning of each `except` of its own that does not raise again. No line moves."""
    training = _functions_that_train(tree)
    for node in nodes_of(tree):
        if not isinstance(node, ast.Try):
            continue
        trains = any(_trains(inner, training) for statement in node.body for inner in nodes_of(statement))
        for handler in node.handlers:
            if not any(isinstance(inner, ast.Raise) for inner in nodes_of(handler)):
                _note_in(handler, trains)
    setattr(builtins, _NAME, lambda line, trains: _note(Location(path, line), trains))
    return compile(tree, path, "exec", dont_inherit=True)


def caught_exceptions() -> tuple[CaughtFacts, ...]:
    """The caught exceptions in the order in which they were caught."""
    return tuple(_caught)


def nodes_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Like `ast.walk`, which imports `collections` when it is called: by then the path leads to the program's
    folder."""
    waiting = [tree]
    for node in waiting:
        waiting.extend(ast.iter_child_nodes(node))
        yield node


def _note_in(handler: ast.ExceptHandler, trains: bool) -> None:
    given: list[ast.expr] = [ast.Constant(handler.lineno), ast.Constant(trains)]
    call = ast.Expr(ast.Call(ast.Name(_NAME, ast.Load()), given, []))
    ast.copy_location(call, handler.body[0])
    handler.body.insert(0, ast.fix_missing_locations(call))


def _note(place: Location, trains: bool) -> None:
    error = sys.exc_info()[1]
    if error is not None and len(_caught) < _MOST_KEPT:
        raised = failure_from_exception(error, "script")
        _caught.append(CaughtFacts(raised.exception, raised.message, raised.location, place, trains))


def _functions_that_train(tree: ast.Module) -> set[str]:
    """The names of the functions that call a training method, or another of these functions."""
    functions = {
        node.name: list(_called(node))
        for node in nodes_of(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    training = set(_TRAINING)
    while True:
        more = {name for name, called in functions.items() if training & set(called)} - training
        if not more:
            return training
        training |= more


def _called(node: ast.AST) -> Iterator[str]:
    for inner in nodes_of(node):
        if isinstance(inner, ast.Call):
            yield getattr(inner.func, "attr", "") or getattr(inner.func, "id", "")


def _trains(node: ast.AST, training: set[str]) -> bool:
    return isinstance(node, ast.Call) and bool(
        {getattr(node.func, "attr", ""), getattr(node.func, "id", "")} & training
    )
