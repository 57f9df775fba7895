"""Settings that a program writes out, as the defaults of what the command line or a file may say instead."""

from __future__ import annotations

from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import Api, Collection, Item, Known, Value
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined

STORED = "hydra:"  # before the name of settings that Hydra keeps
_DEEPEST = 12


def as_defaults(state: State, written: Value, place: Api, key: Value, depth: int = 0) -> Value:
    """The same settings, of which each value may be another one: `place` is what gives such settings."""
    if depth > _DEEPEST:
        return written
    if isinstance(written, Collection) and written.kind == "dict":
        pairs = zip(written.items, written.keys, strict=False)
        items = tuple(as_defaults(state, item, place, name, depth + 1) for item, name in pairs)
        return Collection(written.location, "dict", items, written.keys, written.open)
    own, held = class_of(written), state.attributes.get(id(written))
    if isinstance(written, Call) and own is not None and own.kind is None and held is not None:
        copy = Call(written.location, Defined(written.location, own), (), (), state.context, state.next_order())
        told = {name: as_defaults(state, v, place, Known(v.location, name), depth + 1) for name, v in held.items()}
        state.attributes[id(copy)] = state.walk.side_effects.created(told)
        state.events.calls.append(copy)
        return copy
    return joined((written, Item(written.location, place, key))) if isinstance(written, Known) else written
