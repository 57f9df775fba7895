"""The methods of a metaclass of the user's own, which Python calls where a class is made."""

from __future__ import annotations

from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Collection, Known, Value
from mpdoctor.source.interpreter.call_inlining import inline_call
from mpdoctor.source.interpreter.state.interpreter_state import State


def tell_metaclass(state: State, own: ClassFacts, made: Defined, bases: tuple[Value, ...], given: Value | None) -> None:
    """Follow `__new__` and `__init__` of the metaclass of a class, its own (`given`) or the nearest base's, which may
    keep the class somewhere."""
    metaclass = given.of if isinstance(given, Defined) else None
    if metaclass is None:
        inherited = (state.metaclasses.get(id(base)) for base in own.lineage()[1:] if state.metaclasses)
        metaclass = next((candidate for candidate in inherited if candidate is not None), None)
    if not isinstance(metaclass, ClassFacts):
        return
    state.walk.side_effects.set(state.metaclasses, id(own), metaclass)
    location, outer = made.location, state.walk.class_made
    held = {**own.attributes, **{name: Defined(facts.location, facts) for name, facts in own.methods.items()}}
    keys = tuple(Known(location, name) for name in held)
    namespace = Collection(location, "dict", tuple(held.values()), keys)
    args = (Known(location, own.name), Collection(location, "tuple", bases), namespace)
    state.walk.class_made = made
    for name, first in (("__new__", Defined(metaclass.location, metaclass)), ("__init__", made)):
        method = metaclass.find_method(name)
        closure = state.closures.get(id(method)) if method is not None else None
        if closure is not None:
            inline_call(state, closure, (first, *args), (), is_open=False, location=location)
    state.walk.class_made = outer


def class_from_base(state: State, name: str) -> Value | None:
    """What `super().__new__(…)` gives in a metaclass: the class that is being made."""
    return state.walk.class_made if name == "__new__" else None
