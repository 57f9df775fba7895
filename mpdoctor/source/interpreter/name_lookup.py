"""Plain names (`x`): the variable that Python's lookup finds, a builtin, or what a star import brings."""

from __future__ import annotations

import ast

from mpdoctor.facts.location import Location
from mpdoctor.program.values import MISSING, Api, Known, Unknown, Value, options
from mpdoctor.source.constant_folding import constant_from_name
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_use
from mpdoctor.source.names import api_from_name, canonical_name, is_builtin


def evaluate_name(state: State, node: ast.Name) -> Value:
    value = state.scope.find(node.id) or _builtin_or_star_import(state, node.id, node)
    if value in state.imported:
        _record_uses(state, value, state.place(node))
    return value


def find(state: State, name: str, node: ast.expr) -> Value:
    return state.scope.find(name) or _builtin_or_star_import(state, name, node)


def library_name(spelled: str, location: Location) -> Value:
    """An `Api`, or the constant that the name stands for (`math.inf`)."""
    constant = constant_from_name(spelled)
    return api_from_name(spelled, location) if constant is MISSING else Known(location, constant)


def _builtin_or_star_import(state: State, name: str, node: ast.expr) -> Value:
    if is_builtin(name):
        return api_from_name("builtins." + name, state.place(node))
    return _from_star_import(state, name, state.place(node))


def _from_star_import(state: State, name: str, location: Location) -> Value:
    """The library's name that `from keras.layers import *` gives: every one that nothing else explains. Of two such
    imports, the last that is known to have the name; a module after that of which the names are not known leaves it
    open."""
    star = None if name.startswith("_") else _star_with(name, state.module.stars)
    if star is None:
        return Unknown(location)
    value = library_name(f"{star}.{name}", location)
    state.walk.side_effects.set(state.module.scope.names, name, value)
    state.imported.add(value)
    return value


def _star_with(name: str, stars: list[str]) -> str | None:
    if len(stars) < 2:
        return stars[0] if stars else None
    from mpdoctor.knowledge.star_imports import NAMES

    for star in reversed(stars):
        names = NAMES.get(canonical_name(star))
        if names is None or name in names:
            return None if names is None else star
    return None


def _record_uses(state: State, value: Value, location: Location) -> None:
    for choice in options(value):
        if isinstance(choice, Api):
            record_use(state, choice, location)
