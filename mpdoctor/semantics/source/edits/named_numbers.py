"""Edits of numbers that stand in an expression by a name: a constant, an attribute, a default."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import TypeGuard

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location, holds
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Known, Value
from mpdoctor.semantics.source.edits.expressions import replaced
from mpdoctor.semantics.source.texts.syntax_trees import location_of, tree_of
from mpdoctor.semantics.source.texts.written import text_of

DIGITS = frozenset("+-0123456789.eE_ ")
UNHARMED = ("get_config",)  # methods that only tell the number
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class _Name:
    """A name that stands for the number in all of `scope`; an attribute's with `of_object`."""

    scope: ast.AST
    name: str
    of_object: bool = False

    def is_read_by(self, node: ast.AST) -> TypeGuard[ast.expr]:
        if self.of_object:
            return isinstance(node, ast.Attribute) and node.attr == self.name and isinstance(node.ctx, ast.Load)
        return isinstance(node, ast.Name) and node.id == self.name and isinstance(node.ctx, ast.Load)


def number_replaced(facts: SourceFacts, number: Value, uses: Collection[Location], text: str) -> Edit | None:
    """Another number where this one is written, in one of the uses or where a name is bound to it. None where that name
    is read elsewhere too, and another number may be wrong there."""
    number = number.default or number if isinstance(number, Parameter) else number
    place = number.location
    if not isinstance(number, Known) or place.path != facts.path or not set(text_of(facts, place) or "?") <= DIGITS:
        return None
    if any(holds(use, place) for use in uses) or _is_read_by_these_alone(facts, place, uses):
        return replaced(facts, place, text)
    return None


def _is_read_by_these_alone(facts: SourceFacts, number: Location, uses: Collection[Location]) -> bool:
    names = list(_names_given(facts, number))
    for name in names:
        harmless = {id(node) for method in _methods(name.scope) for node in ast.walk(method)}
        reads = (node for node in ast.walk(name.scope) if name.is_read_by(node) and id(node) not in harmless)
        for node in reads:
            handed_on = [new for new in _bound_by(facts, node) if new not in names]
            names += handed_on
            if not handed_on and not any(holds(use, location_of(facts, node)) for use in uses):
                return False
    return bool(names)


def _names_given(facts: SourceFacts, number: Location) -> Iterator[_Name]:
    """The name that the number gets: by an assignment, or as the default of a parameter."""
    tree = tree_of(facts)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, FUNCTIONS):
            given = node.args
            by_position = [*given.posonlyargs, *given.args][
                len(given.posonlyargs) + len(given.args) - len(given.defaults) :
            ]
            pairs = [
                *zip(by_position, given.defaults, strict=True),
                *zip(given.kwonlyargs, given.kw_defaults, strict=True),
            ]
            for parameter, default in pairs:
                if default is not None and location_of(facts, default) == number:
                    yield _Name(node, parameter.arg)
        elif isinstance(node, (ast.Constant, ast.UnaryOp)) and location_of(facts, node) == number:
            yield from _bound_by(facts, node)


def _bound_by(facts: SourceFacts, value: ast.AST) -> Iterator[_Name]:
    """The name that a statement gives to the value, if it is the statement's only one."""
    statement, scope = _parents(facts).get(id(value), (None, None))
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    if scope is None or len(targets) != 1:
        return
    if isinstance(targets[0], ast.Name):
        of_class = isinstance(scope, ast.ClassDef)
        yield _Name(tree_of(facts) or scope if of_class else scope, targets[0].id, of_class)
    elif isinstance(targets[0], ast.Attribute):
        yield _Name(tree_of(facts) or scope, targets[0].attr, of_object=True)


@lru_cache(maxsize=4)
def _parents(facts: SourceFacts) -> dict[int, tuple[ast.AST, ast.AST]]:
    """The statement that assigns a value, and the function, class or module around it, by the id of the value."""
    tree = tree_of(facts)
    parents: dict[int, tuple[ast.AST, ast.AST]] = {}
    waiting: list[tuple[ast.AST, ast.AST]] = [(tree, tree)] if tree is not None else []
    for node, scope in waiting:
        inner = node if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)) else scope
        for child in ast.iter_child_nodes(node):
            waiting.append((child, inner))
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and child is node.value:
                parents[id(child)] = node, inner
    return parents


def _methods(scope: ast.AST) -> Iterator[ast.AST]:
    return (node for node in ast.walk(scope) if isinstance(node, FUNCTIONS) and node.name in UNHARMED)
