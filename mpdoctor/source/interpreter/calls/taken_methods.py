"""Methods that a class's body takes from functions of the file: `call = my_call`."""

from __future__ import annotations

import dataclasses

from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts
from mpdoctor.source.interpreter.state.interpreter_state import State


def take_as_method(state: State, own: ClassFacts, name: str, function: FunctionFacts) -> bool:
    """Make a function that a class's body takes (`call = my_call`) a method of the class; whether it is one."""
    closure = state.closures.get(id(function))
    if closure is None or function.parameters[:1] != ("self",):
        return False
    facts = dataclasses.replace(function, name=name, qualified=f"{own.name}.{name}", owner=own, changed_by=[])
    assert isinstance(own.methods, dict)
    own.methods[name] = facts
    state.closures[id(facts)] = dataclasses.replace(closure, facts=facts)
    state.module.functions.append(facts)
    state.module.closures.append(state.closures[id(facts)])
    if function.owner is None:
        state.walk.executed.add(id(function))  # it is followed as the method
    return True
