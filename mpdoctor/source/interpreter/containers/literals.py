"""Lists, tuples, sets and dicts that a program writes out, and others whose items the source shows."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.values import Api, Collection, Either, Item, Known, Unknown, Value, known, options
from mpdoctor.source.interpreter.containers.elements import contents_of
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined

_BY_COUNT = {
    "tensorflow.split": "num_or_size_splits",
    "tensorflow.unstack": "num",
    "keras.ops.unstack": "num",
}
_BY_COUNT_OR_PLACES = {
    "keras.ops.split": "indices_or_sections",
    "tensorflow.experimental.numpy.split": "indices_or_sections",
    "numpy.split": "indices_or_sections",
}
_MOST_PARTS = 64

MOST_SPREAD = 10_000  # elements of one `[*rest, *rest]`: forty lines of it would make 2^40


def evaluate_sequence(state: State, node: ast.Tuple | ast.List | ast.Set) -> Value:
    items, is_open, ending = spread_out(state, node.elts)
    return Collection(state.place(node), type(node).__name__.lower(), items, (), is_open, ending)


def spread_out(state: State, nodes: Sequence[ast.expr]) -> tuple[tuple[Value, ...], bool, int]:
    """(elements or arguments, whether there may be more of them, how many of these stand behind all that are not seen).
    `*rest` is spread out where its elements are known."""
    if ast.Starred in map(type, nodes):
        return _with_rests(state, nodes)
    return tuple([evaluate(state, node) for node in nodes]), False, 0


def _with_rests(state: State, nodes: Sequence[ast.expr]) -> tuple[tuple[Value, ...], bool, int]:
    items: list[Value] = []
    is_open, ending = False, 0
    for node in nodes:
        if not isinstance(node, ast.Starred):
            items.append(evaluate(state, node))
            ending += 1
            continue
        rest = parts_of_split(contents_of(evaluate(state, node.value)), state.place(node))
        is_seen = isinstance(rest, Collection) and rest.kind in ("list", "tuple")
        if isinstance(rest, Collection) and is_seen and len(items) + len(rest.items) <= MOST_SPREAD:
            items.extend(rest.items)
            is_open = is_open or rest.open
            ending = rest.ending if rest.open else ending + len(rest.items)
        else:
            is_open, ending = True, 0
    return tuple(items), is_open, ending if is_open else 0


def evaluate_dictionary(state: State, node: ast.Dict) -> Value:
    keys: list[Value] = []
    items: list[Value] = []
    is_open = False
    for key_node, item_node in zip(node.keys, node.values, strict=True):
        item = evaluate(state, item_node) if key_node is None else None
        if key_node is not None:
            keys.append(evaluate(state, key_node))
            items.append(evaluate(state, item_node))
        elif (held := _any_of_dicts(item, dict(zip(map(_name_of_key, keys), items, strict=True)))) is not None:
            keys.extend(held.keys)
            items.extend(held.items)
            is_open = is_open or held.open
        else:
            is_open = True
    return dictionary(state.place(node), keys, items, is_open)


def _any_of_dicts(value: Value | None, before: Mapping[tuple[object, ...], Value]) -> Collection | None:
    """What a dict display takes from `**value`, which may be each of several dicts: under each key what any of them
    holds, and what stood there `before` where one of them has no such key. None where it is not seen."""
    if isinstance(value, Collection) and value.kind == "dict":
        return value
    dicts = [choice for choice in options(value) if isinstance(choice, Collection) and choice.kind == "dict"]
    if value is None or not isinstance(value, Either) or len(dicts) < len(value.options):
        return None
    entries = [dict(zip(map(_name_of_key, held.keys), held.items, strict=True)) for held in dicts]
    keys = {_name_of_key(key): key for held in dicts for key in held.keys}
    items = [joined(held.get(name, before.get(name)) for held in entries) for name in keys]
    return Collection(value.location, "dict", tuple(items), tuple(keys.values()), any(held.open for held in dicts))


def dictionary(location: Location, keys: Sequence[Value], items: Sequence[Value], is_open: bool) -> Collection:
    """A dict of these entries, of which a later one takes the place of an earlier one with the same key."""
    last = {_name_of_key(key): place for place, key in enumerate(keys)}
    kept = sorted(last.values()) if len(last) < len(keys) else range(len(keys))
    return Collection(location, "dict", tuple(items[i] for i in kept), tuple(keys[i] for i in kept), is_open)


def united(location: Location, left: Collection, right: Collection) -> Value:
    """`left | right`, of dicts."""
    if left.kind != "dict" or right.kind != "dict" or left.uniform or right.uniform:
        return Unknown(location)
    keys, items = (*left.keys, *right.keys), (*left.items, *right.items)
    return dictionary(location, keys, items, left.open or right.open)


def chained(location: Location, parts: Sequence[Value]) -> Collection | None:
    """The elements of several lists or generators one after the other, where those of each are known."""
    held = [contents_of(container) for container in parts]
    if not all(
        isinstance(contents, Collection) and contents.kind in ("list", "tuple") and not contents.uniform
        for contents in held
    ):
        return None
    items: list[Value] = []
    is_open, ending = False, 0
    for contents in held:
        assert isinstance(contents, Collection)
        items += contents.items
        ending = contents.ending if contents.open else ending + len(contents.items)
        is_open = is_open or contents.open
    return Collection(location, "list", tuple(items), (), is_open, ending if is_open else 0)


def _name_of_key(key: Value) -> tuple[object, ...]:
    name = known(key)
    return ("text", name) if isinstance(name, str) else ("value", id(key))


def parts_of_split(value: Value, location: Location) -> Value:
    """The list of as many parts as the call says, of `tf.split(x, 3)` and the like; other values as they are."""
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return value
    count = _count_of_parts(value, value.callee)
    if count is None or not 0 < count <= _MOST_PARTS:
        return value
    return Collection(location, "list", tuple(Item(location, value, Known(location, i)) for i in range(count)))


def _count_of_parts(call: Call, callee: Api) -> int | None:
    for names, more in ((_BY_COUNT, 0), (_BY_COUNT_OR_PLACES, 1)):
        for name, parameter in names.items():
            if callee.is_(name):
                said = call.argument(1, parameter)
                number = known(said)
                if isinstance(said, Collection) and not said.open and not said.uniform:
                    return len(said.items) + more
                return number if isinstance(number, int) and not isinstance(number, bool) else None
    return None
