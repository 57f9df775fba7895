"""Methods of the lists and dicts that the program writes out: what they change, and what they give."""

from __future__ import annotations

import ast
import dataclasses

from mpdoctor.program.events import Call
from mpdoctor.program.values import MISSING, Attribute, Collection, Known, Unknown, Value, known, options
from mpdoctor.source.constant_folding import list_of_both
from mpdoctor.source.interpreter.containers.calls import dict_of
from mpdoctor.source.interpreter.containers.changes import kept, put_back
from mpdoctor.source.interpreter.containers.elements import item_of
from mpdoctor.source.interpreter.containers.literals import dictionary
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined, tells_of_all

MOST_ITEMS = 500
_CHANGING_LISTS = ("append", "appendleft", "extend", "insert", "pop", "popleft", "remove", "clear", "reverse", "sort")
_CHANGING_DICTS = ("update", "setdefault", "pop", "popitem", "clear")
_CHANGING = {"list": _CHANGING_LISTS, "dict": _CHANGING_DICTS, "set": ("add", "update", "pop", "remove", "clear")}


def call_method_of_container(
    state: State, of: Collection, method: Attribute, call: Call, node: ast.Call
) -> Value | None:
    name, holder = method.name, node.func.value if isinstance(node.func, ast.Attribute) else None
    if holder is None:
        of, holder = _held_now(state, of, method)
    given = _result_of_dict(of, name, call) if of.kind == "dict" else _result_of_list(of, name, call)
    if name in _CHANGING.get(of.kind, ()) and holder is not None:
        adds_behind = of.kind == "list" and name in ("append", "extend")
        is_certain = not state.context.loops and not call.open and (adds_behind or not of.uniform)
        new = (
            _changed_dict(of, name, call, is_certain)
            if of.kind == "dict"
            else _changed_list(of, name, call, is_certain)
        )
        if len(new.items) > MOST_ITEMS:
            new = _made_open(of)
        put_back(state, holder, of, new)
    return given


def extend_list(state: State, holder: ast.expr, old: Value, added: Value) -> bool:
    """Execute `held += added` of a list that the program writes out, which is changed in place; False of anything
    else."""
    if not isinstance(old, Collection) or old.kind != "list" or not isinstance(added, Collection):
        return False
    extended = _extended(old, added, is_certain=not state.context.loops)
    if len(extended.items) > MOST_ITEMS:
        return False
    put_back(state, holder, old, extended)
    return True


def _held_now(state: State, of: Collection, method: Attribute) -> tuple[Collection, ast.expr | None]:
    """What the list or dict has become since its method was given a name, and the expression that holds it; None where
    that name says something else by now, or here."""
    _, holder = state.walk.methods_by_name.get(id(method), (method, None))
    held = options(kept(state, holder)) if holder is not None else ()
    now = [choice for choice in held if isinstance(choice, Collection) and choice.location == of.location]
    return (now[0], holder) if len(now) == 1 else (of, None)


def _result_of_dict(of: Collection, method: str, call: Call) -> Value | None:
    if method == "copy":
        return dataclasses.replace(of)
    if method in ("get", "pop", "setdefault") and call.args:
        got = [_result_of_get(of, key, method, call) for key in options(call.args[0])]
        return joined(got) if None not in got else None
    pairs = (Collection(call.location, "tuple", pair) for pair in zip(of.keys, of.items, strict=True))
    held = {"values": of.items, "keys": of.keys, "items": tuple(pairs)}.get(method)
    return None if held is None else Collection(call.location, "list", held, (), of.open, uniform=of.uniform)


def _result_of_get(of: Collection, key: Value, method: str, call: Call) -> Value | None:
    """The result of `get`, `pop` or `setdefault` for one of the values that its key may be. `names.get(name, name)`
    gives that value again only where it is no key; `pop` without a default raises where there is no such key."""
    item = item_of(Collection(of.location, "dict", of.items, of.keys, of.open, uniform=of.uniform), key, call.location)
    default = call.argument(1) or Known(call.location, None)
    default = key if key in options(default) else default
    certain = isinstance(key, Known) and not of.open
    if isinstance(item, Unknown):
        is_kept = method == "setdefault" and not of.uniform
        return default if certain else joined((default, item)) if is_kept else None
    is_needed = method == "pop" and call.argument(1) is None
    return item if certain or is_needed else joined((item, default))


def _result_of_list(of: Collection, method: str, call: Call) -> Value | None:
    match method:
        case "copy":
            return dataclasses.replace(of)
        case "pop" if of.kind == "list":
            return item_of(of, call.argument(0) or Known(call.location, -1), call.location)
        case "popleft":
            return item_of(of, Known(call.location, 0), call.location)
        case "index":
            return _index(of, call)
        case "_asdict" if len(of.keys) == len(of.items):  # of a named tuple; a plain one has no such method
            return Collection(call.location, "dict", of.items, of.keys)
        case "_replace" if len(of.keys) == len(of.items):
            given = {known(key): item for key, item in zip(of.keys, of.items, strict=True)} | dict(call.keywords)
            return Collection(call.location, "tuple", tuple(given.values()), of.keys)
    return None


def _index(of: Collection, call: Call) -> Value | None:
    """The result of `index` for a text or number in a list whose elements are all known."""
    held, wanted = [known(item) for item in of.items], known(call.argument(0))
    is_known = not of.open and len(call.args) == 1 and all(type(value) in (str, int) for value in (*held, wanted))
    return Known(call.location, held.index(wanted)) if is_known and wanted in held else None


def _changed_dict(of: Collection, method: str, call: Call, is_certain: bool) -> Collection:
    """A dict after a method that changes it."""
    key = known(call.args[0]) if call.args else MISSING
    match method:
        case "clear" if is_certain:
            return of.with_entries((), (), is_open=False)
        case "update":
            given = dict_of(call.args, call.keywords, call.open, call.location)
            return _with_updates(of, given, is_certain) if isinstance(given, Collection) else _made_open(of)
        case "setdefault" if key is not MISSING and not call.open and not of.uniform:
            return _with_default(of, call, is_certain) if of.entry(key) is None else of
        case "pop" if is_certain and key is not MISSING:
            kept = [place for place, name in enumerate(of.keys) if known(name) != key]
            return of.with_entries(tuple(of.keys[i] for i in kept), tuple(of.items[i] for i in kept), of.open)
    return _made_open(of)


def _with_default(of: Collection, call: Call, is_certain: bool) -> Collection:
    """The dict after `setdefault` for a key that it does not have."""
    added = call.argument(1) or Known(call.location, None)
    return of.with_entries((*of.keys, call.args[0]), (*of.items, added), of.open or not is_certain)


def _with_updates(of: Collection, given: Collection, is_certain: bool) -> Collection:
    """The dict after `update(given)`. Where the update is not certain, in a loop or with unknown keys, each key may
    still hold its old value."""
    keys, items = (*of.keys, *given.keys), (*of.items, *given.items)
    if not is_certain:
        return of.with_entries(keys, items, is_open=True)
    updated = dictionary(of.location, keys, items, of.open or given.open)
    return of.with_entries(updated.keys, updated.items, updated.open)


def _changed_list(of: Collection, method: str, call: Call, is_certain: bool) -> Collection:
    """A list or set after a method that changes it."""
    if of.kind == "list" and method == "append" and call.args:
        return _with_appended(of, call.args[0], is_certain)
    if of.kind == "list" and method == "extend" and call.args and isinstance(call.args[0], Collection):
        return _extended(of, call.args[0], is_certain)
    if not is_certain or of.open:
        return _made_open(of)
    items = _changed_items(list(of.items), method, call)
    return _made_open(of) if items is None else Collection(of.location, of.kind, tuple(items))


def _extended(of: Collection, added: Collection, is_certain: bool) -> Collection:
    extended = list_of_both(of, added)
    return extended if is_certain else _filled_on(extended, of, added)


def _with_appended(of: Collection, value: Value, is_certain: bool) -> Collection:
    if not is_certain and not of.items and not of.open:  # each element is made so, as by a comprehension
        return Collection(of.location, of.kind, (value,), open=True, uniform=tells_of_all(value))
    added = Collection(of.location, of.kind, (value,))
    appended = list_of_both(of, added)
    return appended if is_certain else _filled_on(appended, of, added)


def _filled_on(filled: Collection, of: Collection, added: Collection) -> Collection:
    """What a list has become that a loop or an arm adds to: there may be more of these elements, but no others."""
    is_seen = of.shows_each and added.shows_each and all(map(tells_of_all, added.items))
    return dataclasses.replace(_made_open(filled), alike=is_seen)


def _changed_items(items: list[Value], method: str, call: Call) -> list[Value] | None:
    """The elements after the method; None where it is not known which there are, or in which order."""
    place = known(call.args[0]) if call.args else -1
    match method:
        case "clear":
            return []
        case "reverse":
            return items[::-1]
        case "appendleft" if call.args:
            return [call.args[0], *items]
        case "insert" if isinstance(place, int) and len(call.args) == 2:
            items.insert(place, call.args[1])
            return items
        case "popleft":
            return items[1:]
        case "pop" if isinstance(place, int) and -len(items) <= place < len(items):
            items.pop(place)
            return items
    return None


def _made_open(of: Collection) -> Collection:
    if of.kind == "dict":
        return of.with_entries(of.keys, of.items, is_open=True)
    return Collection(of.location, of.kind, of.items, of.keys, open=True)
