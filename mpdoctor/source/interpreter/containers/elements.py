"""What a program takes from lists, tuples, sets and dicts: by an index, a key or a slice, or one after the other."""

from __future__ import annotations

import ast

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Collection, Either, Item, Known, Part, Unknown, Value, known, options
from mpdoctor.source.interpreter.attributes import inlined_method, item_of_object
from mpdoctor.source.interpreter.containers.changes import kept_item
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined

MOST_NESTED = 4  # of `zip(…)` and the like in one another: forty lines of `v = zip(v, v)` would make 2^40
ITERATING = (
    *("builtins.enumerate", "builtins.zip", "builtins.reversed", "builtins.sorted", "builtins.iter", "builtins.next"),
    *("builtins.list", "builtins.tuple", "builtins.filter", "builtins.map", "tqdm.tqdm", "tqdm.auto.tqdm"),
)
_TOGETHER = ("builtins.zip", "itertools.product")  # an element of each
_PASSING_ON = (
    *("builtins.reversed", "builtins.sorted", "builtins.iter", "builtins.list", "builtins.tuple"),
    *("tqdm.tqdm", "tqdm.auto.tqdm", "random.sample", "random.choices"),
)


def evaluate_subscript(state: State, node: ast.Subscript) -> Value:
    of, place = evaluate(state, node.value), state.place(node)
    if isinstance(node.slice, ast.Slice):
        taken = _known_slice(state, node.slice)
        return joined(_slice_of(choice, taken, place) for choice in options(of))
    index, choices = evaluate(state, node.slice), _without_empty_lists(of)
    kept = [kept_item(state, choice, index) or item_of_object(state, choice, index, place) for choice in choices]
    return joined(held or item_of(choice, index, place) for held, choice in zip(kept, choices, strict=True))


def _known_slice(state: State, node: ast.Slice) -> slice | None:
    """The slice; None where a bound is not known."""
    nodes = (node.lower, node.upper, node.step)
    bounds = [None if bound is None else known(evaluate(state, bound)) for bound in nodes]
    is_known = all(bound is None or isinstance(bound, int) for bound in bounds) and bounds[2] != 0
    return slice(*bounds) if is_known else None


def _without_empty_lists(of: Value) -> list[Value]:
    """What the value may be, without an empty list: no element is ever taken from it, and it stood there before the
    loop that fills it."""
    choices = list(options(of))
    return [choice for choice in choices if not _is_empty(choice)] or choices


def _is_empty(value: Value) -> bool:
    return isinstance(value, Collection) and value.kind == "list" and not value.items and not value.open


def _slice_of(of: Value, taken: slice | None, location: Location) -> Value:
    """The value of `of[start:stop]`. A part of what a comprehension makes is like the whole."""
    if isinstance(of, Known) and isinstance(of.value, str) and taken is not None:
        return Known(location, of.value[taken])
    if not isinstance(of, Collection) or of.kind == "dict":
        return Item(location, of, Unknown(location) if taken is None else Part(location, taken))
    if of.uniform:
        return of
    if of.open or taken is None:
        return in_any_order(of, location)
    return Collection(location, of.kind, of.items[taken])


def in_any_order(of: Collection, location: Location) -> Collection:
    """A list of the same elements in any order: each place may hold any of them."""
    held = of.keys if of.kind == "dict" else of.items
    return Collection(location, "list", (joined(held),) if held else (), open=True, uniform=bool(held))


def item_of(of: Value, index: Value | None, location: Location) -> Value:
    """`of[index]`; where `index` is None, any one element."""
    if not isinstance(of, Collection):
        return Item(location, of, index)
    elements = of.keys if of.kind == "dict" and index is None else of.items
    if of.uniform:
        return elements[0]
    if isinstance(index, Known):
        return _entry_of(of, index, location)
    if isinstance(index, Parameter) and of.open and isinstance(known(index.default), str):  # `globals()[name]`
        return of.entry(known(index.default)) or Item(location, of, index)
    if isinstance(index, Either) and not of.open and _holds_constant(index) and not isinstance(known(index), bool):
        return joined(_entry_at(of, option, location) for option in index.options)  # but a flag chooses between both
    is_whole = of.shows_each or _is_filled_under_any_key(of)
    return joined(elements) if elements and is_whole else Item(location, of, index)


def _holds_constant(index: Either) -> bool:
    return any(isinstance(option, Known) for option in index.options)


def _is_filled_under_any_key(of: Collection) -> bool:
    """Whether it is filled by `layers[f"dense_{i}"] = …`, and no key of the dict is known: any value may stand under
    any key."""
    return of.kind == "dict" and bool(of.items) and all(isinstance(key, Unknown) for key in of.keys)


def _entry_at(of: Collection, index: Value, location: Location) -> Value:
    """The entry under one of the values that an index may be."""
    return _entry_of(of, index, location) if isinstance(index, Known) else Item(location, of, index)


def _entry_of(of: Collection, index: Known, location: Location) -> Value:
    """What a container holds under an index or key that is known."""
    try:
        entry = of.entry(index.value)
    except TypeError:  # a key that cannot be compared
        entry = None
    if of.kind != "dict":
        return entry or Item(location, of, index)
    entries = [*options(entry), *_under_unknown_keys(of, entry)]
    if entries or of.default is None:
        return joined(entries) if entries else Unknown(location)
    return joined((of.default, Unknown(location))) if of.open else of.default


def _under_unknown_keys(of: Collection, entry: Value | None) -> list[Value]:
    """The values that a dict was given behind this entry, under keys that are not known: any of them may have taken the
    entry's place."""
    first = 0 if entry is None else 1 + max(place for place, item in enumerate(of.items) if item is entry)
    return [of.items[place] for place in range(first, len(of.items)) if not isinstance(of.keys[place], Known)]


def contents_of(iterable: Value) -> Value:
    """The elements that a generator of the user's gives, in the place of the generator; other values as they are."""
    return iterable.yielded if isinstance(iterable, Call) and iterable.yielded is not None else iterable


def iterated(state: State, iterable: Value) -> Value:
    """What a loop over it goes through: of an object of the user's own class what its `__iter__`, `__next__` or
    `__getitem__` gives."""
    return joined(_given_by_object(state, choice) for choice in options(iterable))


def _given_by_object(state: State, of: Value) -> Value:
    own = class_of(of)
    if own is None:
        return of
    outer, place = state.context, of.location
    given = inlined_method(state, own, "__iter__", (of,), place)
    if given is not None and class_of(given) is not own:
        return given
    state.context = outer.but(loops=outer.loops + 1)
    counted = Item(place, Api(place, "builtins.range", "builtins", "builtins.range"))
    element = inlined_method(state, own, "__next__", (of,), place)
    element = element or inlined_method(state, own, "__getitem__", (of, counted), place)
    state.context = outer
    return of if element is None else Collection(place, "list", (element,), open=True, uniform=True)


def elements_in_turn(iterable: Value, location: Location, depth: int = MOST_NESTED) -> tuple[Value, ...]:
    """What a `for` over a value binds, round by round; () where that is not known, or where there is no round. `depth`:
    how many more of `zip`, `enumerate` and `reversed` may stand in one another."""
    if isinstance(iterable, Collection):
        ordered = iterable.keys if iterable.kind == "dict" else iterable.items
        return () if iterable.open or iterable.kind == "set" else ordered
    if not isinstance(iterable, Call) or iterable.open or not iterable.args or not depth:
        return ()
    name = iterable.callee.name if isinstance(iterable.callee, Api) else ""
    if name == "random.sample":  # in an order that it may take
        return elements_in_turn(iterable.args[0], location, depth - 1)
    if name not in ("builtins.zip", "builtins.enumerate", "builtins.reversed"):
        return ()
    several = [elements_in_turn(argument, location, depth - 1) for argument in iterable.args]
    if name == "builtins.zip":
        return tuple(Collection(location, "tuple", together) for together in zip(*several, strict=False))
    if name == "builtins.enumerate" and len(several) == 1:
        pairs = ((Known(location, number), element) for number, element in enumerate(several[0]))
        return tuple(Collection(location, "tuple", pair) for pair in pairs)
    return several[0][::-1] if name == "builtins.reversed" else ()


def element_of(iterable: Value, location: Location, depth: int = MOST_NESTED) -> Value:
    """One element of a value, as a `for` over it binds it. `depth`: how many more of `zip` may stand in one another."""
    return joined(_element_of(contents_of(choice), location, depth) for choice in _without_empty_lists(iterable))


def _element_of(iterable: Value, location: Location, depth: int) -> Value:
    """What a loop over an iterable gets each time: of `enumerate` and `zip` a tuple of elements."""
    if isinstance(iterable, Call) and isinstance(iterable.callee, Api) and iterable.args:
        name = iterable.callee.name
        if name == "builtins.enumerate":
            counted = Item(location, Api(location, "builtins.range", "builtins", "builtins.range"))
            pair = (counted, element_of(iterable.args[0], location, depth))
            return Collection(location, "tuple", pair)
        if name in _TOGETHER and not iterable.open and not iterable.keywords and depth:
            together = tuple(element_of(argument, location, depth - 1) for argument in iterable.args)
            return Collection(location, "tuple", together)
        if name in _PASSING_ON:
            return element_of(iterable.args[0], location, depth)
    return item_of(iterable, None, location)
