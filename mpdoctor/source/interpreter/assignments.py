"""Assignment to names, attributes, items, and tuples of them."""

from __future__ import annotations

import ast

from mpdoctor.program.values import Collection, Item, Known, Unknown, Value, known, options
from mpdoctor.source.interpreter.attributes import name_of_item, store_attribute
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_write
from mpdoctor.source.joining import joined, tells_of_all

_MOST_ELEMENTS = 12
_MOST_UNKNOWN_KEYS = 20  # values that a dict is given under keys that are not known


def assign(state: State, target: ast.expr, value: Value, augmented: bool = False) -> None:
    if isinstance(target, ast.Name):
        is_placeholder = isinstance(value, Known) and value.value is None
        if state.scope.parent is None and target.id in state.module.changed_globals and not is_placeholder:
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
        _forget_tree(state, target.value, of)
    elif isinstance(target, ast.Subscript):
        of, index = evaluate(state, target.value), evaluate(state, target.slice)
        record_write(state, of, "", value, state.place(target), index, augmented)
        remember_keyword(state, target.value, index, value)
        if isinstance(target.value, ast.Name) and isinstance(of, Collection):
            rebind(state, target.value.id, _with_item(state, of, index, value))
        elif (name := name_of_item(of, index)) is not None:
            store_attribute(state, of, name, value)


def _forget_tree(state: State, holder: ast.expr, of: Value) -> None:
    """`settings.train.dtype = …`: of a tree of settings that the program changes, nothing is known any more."""
    while isinstance(holder, ast.Attribute):
        holder = holder.value
    if isinstance(holder, ast.Name) and any(isinstance(choice, Collection) for choice in options(of)):
        rebind(state, holder.id, Unknown(of.location))


def rebind(state: State, name: str, value: Value) -> None:
    """A list or dict that was changed in place, under the name that holds it, in the function or around it."""
    holder = state.scope
    while name not in holder.names and name not in holder.redirected and holder.parent is not None:
        holder = holder.parent
    if holder is state.scope or name not in holder.names or not state.context.reached:
        state.bind(name, value)
    else:
        state.walk.side_effects.set(holder.names, name, value)


def remember_keyword(state: State, holder: ast.expr, key: Value, value: Value) -> None:
    """`kwargs["dtype"] = …`, where the function takes `**kwargs`."""
    function, name = state.frame.function, known(key)
    if function is None or not isinstance(holder, ast.Name) or not isinstance(name, str):
        return
    if function.parameters[-1:] == ("**" + holder.id,):
        state.frame.keywords_set[name] = value


def _with_item(state: State, of: Collection, index: Value, value: Value) -> Value:
    if of.kind == "dict" and isinstance(index, Known) and len(of.items) < 500:
        is_open = of.open or bool(state.context.loops)
        kept = [place for place, key in enumerate(of.keys) if is_open or known(key) != index.value]
        items, keys = tuple(of.items[i] for i in kept), tuple(of.keys[i] for i in kept)
        return Collection(of.location, "dict", (*items, value), (*keys, index), is_open)
    if of.kind == "dict" and len(of.items) < _MOST_UNKNOWN_KEYS:  # any of these is under any key
        items = (*of.items, value)
        return Collection(of.location, "dict", items, (Unknown(of.location),) * len(items), True)
    return _with_element(state, of, index, value)


def _with_element(state: State, of: Collection, index: Value, value: Value) -> Value:
    """A list with another element at an index; where that is not known, any element may be this one or as before."""
    place = known(index)
    if isinstance(place, int) and not of.open and not state.context.loops and 0 <= place < len(of.items):
        return Collection(of.location, of.kind, (*of.items[:place], value, *of.items[place + 1 :]))
    if of.kind != "list" or len(of.items) > _MOST_ELEMENTS:
        return Collection(of.location, of.kind, (), (), True)
    element = joined((*of.items, value))
    return Collection(of.location, "list", (element,), (), True, uniform=tells_of_all(value))


def _unpack(state: State, targets: list[ast.expr], value: Value) -> None:
    starred = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    for position, target in enumerate(targets):
        location = state.place(target)
        parts = []
        for choice in options(value):
            fits = isinstance(choice, Collection) and choice.kind in ("list", "tuple") and not choice.open
            if fits and starred is None and isinstance(choice, Collection) and len(choice.items) == len(targets):
                parts.append(choice.items[position])
            elif isinstance(choice, Collection) and choice.uniform and choice.kind != "dict":
                parts.append(choice if position == starred else choice.items[0])
            elif starred is None or position < starred:
                parts.append(Item(location, choice, Known(location, position)))
            else:
                parts.append(Item(location, choice, None))
        assign(state, target, joined(parts))
