"""Methods of the lists and dicts that the program writes out: what they change, and what they give."""

from __future__ import annotations

import ast

from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import Instance
from mpdoctor.program.values import Collection, Known, Unknown, Value, options
from mpdoctor.source.interpreter.calls.container_calls import dict_of
from mpdoctor.source.interpreter.containers import dictionary, item_of
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined, tells_of_all

_MUTATING = ("append", "extend", "insert", "add", "update", "pop", "remove", "clear", "setdefault")


def call_method_of_container(state: State, of: Collection, name: str, call: Call, node: ast.Call) -> Value | None:
    if name in _MUTATING:
        _mutate(state, of, name, call, node)
        return None
    return _read_from_dict(of, name, call) if of.kind == "dict" else None


def _read_from_dict(of: Collection, method: str, call: Call) -> Value | None:
    """What `get`, `keys`, `values` and `items` of a dictionary give that is written out."""
    if method == "get" and call.args:
        got = [_got(of, key, call) for key in options(call.args[0])]
        return joined(got) if None not in got else None
    pairs = (Collection(call.location, "tuple", pair) for pair in zip(of.keys, of.items, strict=True))
    held = {"values": of.items, "keys": of.keys, "items": tuple(pairs)}.get(method)
    return None if held is None else Collection(call.location, "list", held, (), of.open, uniform=of.uniform)


def _got(of: Collection, key: Value, call: Call) -> Value | None:
    """What `get` gives for one of the values that its key may be. `names.get(name, name)` gives that value again only
    where it is no key."""
    found = item_of(of, key, call.location)
    default = call.argument(1) or Known(call.location, None)
    default = key if key in options(default) else default
    certain = isinstance(key, Known) and not of.open
    if isinstance(found, Unknown):
        return default if certain else None
    return found if certain else joined((found, default))


def _mutate(state: State, of: Collection, method: str, call: Call, node: ast.Call) -> None:
    """A list or dict that is changed in place becomes a new value under the same name, among the others that the name
    may stand for."""
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    new = _changed(of, method, call, is_certain=not state.context.loops)
    if len(new.items) > 500:
        new = Collection(of.location, of.kind, of.items, of.keys, True)
    if isinstance(receiver, ast.Name):
        state.bind(receiver.id, _with_replaced_choice(state.scope.find(receiver.id), of, new))
    elif isinstance(receiver, ast.Attribute):
        for choice in options(_holder_of(state, receiver)):
            _replace_attribute(state, choice, receiver.attr, of, new)


def _with_replaced_choice(value: Value | None, old: Value, new: Value) -> Value:
    return joined(new if choice is old else choice for choice in options(value)) if old in options(value) else new


def _changed(of: Collection, method: str, call: Call, is_certain: bool) -> Collection:
    added = call.args[:1]
    if method == "append" and added and of.kind == "list":
        if not is_certain and not of.items and not of.open:  # each element is made so, as by a comprehension
            return Collection(of.location, of.kind, added, (), True, uniform=tells_of_all(added[0]))
        return Collection(of.location, of.kind, (*of.items, *added), (), of.open or not is_certain)
    if method == "extend" and added and isinstance(added[0], Collection) and of.kind == "list":
        rest = added[0]
        return Collection(of.location, of.kind, (*of.items, *rest.items), (), of.open or rest.open or not is_certain)
    if method == "update" and of.kind == "dict" and is_certain and not of.uniform and not call.open:
        given = dict_of(call.args, call.keywords, False, call.location)
        return _updated(of, given if isinstance(given, Collection) else None)
    return Collection(of.location, of.kind, of.items, of.keys, True)


def _updated(of: Collection, given: Collection | None) -> Collection:
    if given is None:
        return Collection(of.location, of.kind, of.items, of.keys, True)
    return dictionary(of.location, (*of.keys, *given.keys), (*of.items, *given.items), of.open or given.open)


def _holder_of(state: State, node: ast.Attribute) -> Value:
    inner = node.value
    return (state.scope.find(inner.id) or Unknown()) if isinstance(inner, ast.Name) else Unknown()


def _replace_attribute(state: State, holder: Value, name: str, old: Value, new: Value) -> None:
    attributes = state.attributes.get(id(holder))
    if attributes is not None and name in attributes:
        state.walk.side_effects.set(attributes, name, _with_replaced_choice(attributes[name], old, new))
    if isinstance(holder, Instance) and name in holder.of.attributes:
        state.walk.side_effects.set(
            holder.of.attributes, name, _with_replaced_choice(holder.of.attributes[name], old, new)
        )
