"""Keras' own small number: `epsilon()` gives 1e-7 until `set_epsilon(…)` says another one."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.values import Known, Unknown, Value
from mpdoctor.source.interpreter.state.interpreter_state import State

_READ, _SET = "keras.backend.epsilon", "keras.backend.set_epsilon"
EPSILON = (_READ, _SET)
BY_DEFAULT = 1e-7


def epsilon_of_keras(state: State, name: str, args: tuple[Value, ...], location: Location) -> Value | None:
    """The result of `epsilon()` or `set_epsilon(…)`. Under an `if` any value may have been set."""
    if public_name(name) == _READ:
        return state.flags.get(_READ) or Known(location, BY_DEFAULT)
    is_certain = len(args) == 1 and not state.context.branches
    state.walk.side_effects.set(state.flags, _READ, args[0] if is_certain else Unknown(location))
    return None
