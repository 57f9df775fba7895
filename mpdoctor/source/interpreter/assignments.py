"""Assignment to names, attributes, items, and tuples of them."""

from __future__ import annotations

import ast

from mpdoctor.facts.location import Location
from mpdoctor.program.values import Collection, Item, Known, Unknown, Value, known, options
from mpdoctor.source.interpreter.containers.changes import keep_item, put_back, put_back_everywhere, with_item
from mpdoctor.source.interpreter.containers.elements import item_of
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.settings.own_dicts import name_of_item
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_write
from mpdoctor.source.interpreter.stored_attributes import store_attribute
from mpdoctor.source.joining import joined


def assign(state: State, target: ast.expr, value: Value, augmented: bool = False) -> None:
    """Bind a value to a target: a name, an attribute, an item, or a tuple of such. `augmented`: by `+=` and the
    like."""
    if isinstance(target, ast.Name):
        if state.scope.parent is None and target.id in state.module.changed_globals and known(value) is not None:
            value = joined((value, Unknown(value.location)))
        state.choose(value)
        state.bind(target.id, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(state, target.elts, value)
    elif isinstance(target, ast.Starred):
        assign(state, target.value, value)
    elif isinstance(target, ast.Attribute):
        of = evaluate(state, target.value)
        state.choose(value)
        record_write(state, of, target.attr, value, state.place(target), None, augmented)
        store_attribute(state, of, target.attr, value)
        _store_in_tree(state, target.value, of, target.attr, value)
    elif isinstance(target, ast.Subscript):
        of, index = evaluate(state, target.value), evaluate(state, target.slice)
        record_write(state, of, "", value, state.place(target), index, augmented)
        remember_keyword(state, target.value, index, value)
        for choice in options(of):
            if isinstance(choice, Collection):
                put_back_everywhere(state, target.value, choice, with_item(state, choice, index, value))
        if (name := name_of_item(of, index)) is not None:
            store_attribute(state, of, name, value)
        keep_item(state, of, index, value)


def _store_in_tree(state: State, holder: ast.expr, of: Value, name: str, value: Value) -> None:
    """`settings.train.dtype = …`, of a tree of settings."""
    for choice in options(of):
        if isinstance(choice, Collection):
            put_back(state, holder, choice, with_item(state, choice, Known(value.location, name), value))


def remember_keyword(state: State, holder: ast.expr, key: Value, value: Value) -> None:
    """Remember `kwargs["dtype"] = …`, where the function takes `**kwargs`."""
    function, name = state.frame.function, known(key)
    if function is None or not isinstance(holder, ast.Name) or not isinstance(name, str):
        return
    if function.parameters[-1:] == ("**" + holder.id,):
        state.frame.keywords_set[name] = value


def _unpack(state: State, targets: list[ast.expr], value: Value) -> None:
    starred = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    for position, target in enumerate(targets):
        location = state.place(target)
        parts: list[Value] = []
        for choice in options(value):
            held = _shared_out(choice, len(targets), starred, location)
            if held is not None:
                parts.append(held[position])
            elif isinstance(choice, Collection) and choice.uniform and choice.kind != "dict":
                parts.append(choice if position == starred else choice.items[0])
            elif starred is None or position < starred:
                parts.append(item_of(choice, Known(location, position), location))
            elif position == starred:
                any_of_them = (item_of(choice, None, location),)
                parts.append(Collection(location, "list", any_of_them, open=True, uniform=True))
            else:
                parts.append(Item(location, choice, None))
        assign(state, target, joined(parts))


def _shared_out(value: Value, count: int, starred: int | None, location: Location) -> list[Value] | None:
    """What each target gets of a list or tuple that is known as a whole; `*rest` gets what the others leave."""
    if not isinstance(value, Collection) or value.kind not in ("list", "tuple") or value.open:
        return None
    held = list(value.items)
    if starred is not None and len(held) >= count - 1:
        end = len(held) - (count - starred - 1)
        held[starred:end] = [Collection(location, "list", tuple(held[starred:end]))]
    return held if len(held) == count else None
