"""Template methods: methods of a base class that call what a subclass overrides, and so do something else for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Closure, Module
from mpdoctor.source.syntax_nodes import SETTING_UP

_CALLED_BY_KERAS = ("call", "train_step")
_ABOVE = ("super", "__class__")  # what speaks of the class that a method stands in


def inherited_templates(state: State, own: ClassFacts) -> Iterator[Closure]:
    """What Keras calls of a class's objects, and the class inherits from another of the user's own: where that, or what
    sets the objects up, calls a method which the class has written anew, it does something else than in the base
    class. Not where it says `super()`, which followed for this class would be the method itself once more."""
    if not own.is_layer:
        return
    sets_up_otherwise = any(
        _calls_others_in(state, closure, own) for closure in _inherited_methods(state, own, SETTING_UP)
    )
    for closure in _inherited_methods(state, own, _CALLED_BY_KERAS):
        if not _speaks_of_its_class(closure) and (sets_up_otherwise or _calls_others_in(state, closure, own)):
            yield closure


def _inherited_methods(state: State, own: ClassFacts, names: tuple[str, ...]) -> list[Closure]:
    methods = [method for name in names if (method := own.find_method(name)) is not None and method.owner is not own]
    closures = [state.closures.get(id(method)) for method in methods]
    return [closure for closure in closures if closure is not None and not closure.is_static]


def _speaks_of_its_class(closure: Closure) -> bool:
    return any(isinstance(node, ast.Name) and node.id in _ABOVE for node in ast.walk(closure.node))


def _calls_others_in(state: State, closure: Closure, own: ClassFacts) -> bool:
    """Whether a method, or a method that it calls, names by `self` a method that this class overrides."""
    above = closure.facts.owner
    if above is None:
        return False
    waiting, seen = [closure], {id(closure.facts)}
    for method in waiting:
        for name in _named_by_self(method):
            mine, theirs = own.find_method(name), above.find_method(name)
            if mine is not theirs:
                return True
            called = state.closures.get(id(mine)) if mine is not None and id(mine) not in seen else None
            if called is not None:
                seen.add(id(mine))
                waiting.append(called)
    return False


def _named_by_self(method: Closure) -> set[str]:
    """The attributes of its object that a method's body names."""
    itself = method.facts.parameters[:1]
    attributes = (node for node in ast.walk(method.node) if itself and isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == itself[0]}


def steps_of_templates(state: State, module: Module) -> set[int]:
    """The ids of training steps that only subclasses run: nobody makes the base class, and its step calls what
    subclasses define."""
    return {
        id(closure.facts)
        for own in module.classes
        for closure in inherited_templates(state, own)
        if closure.facts.name == "train_step" and id(closure.facts.owner) not in state.walk.instantiated
    }
