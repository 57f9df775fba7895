"""Outputs of a model that stand in lists and dicts inside one another."""

from __future__ import annotations

from collections.abc import Sequence

from mpdoctor.program.values import Collection, Item, Value, known, options

ANY = None  # in place of a number or a key: each element, as a loop takes them


def whole_and_places(item: Item) -> tuple[Value, tuple[object, ...]]:
    """What an item of an item is taken from, and the numbers and keys on the way, outermost first; ANY for the variable
    of a loop, and for a number that is not known."""
    places: list[object] = []
    value: Value = item
    while isinstance(value, Item):
        place = known(value.index) if value.index is not None else ANY
        places.append(place if isinstance(place, int | str) else ANY)
        value = value.of
    return value, tuple(reversed(places))


def inner_outputs(whole: Sequence[Value], places: Sequence[object]) -> tuple[Value, ...]:
    """The values in these places of lists and dicts; () where one of them is not seen."""
    values = tuple(whole)
    for place in places:
        values = tuple(option for value in values for option in options(value))
        found = [_elements(value, place) for value in values]
        if not all(found):
            return ()
        values = tuple(element for elements in found for element in elements)
    return values


def _elements(value: Value, place: object) -> tuple[Value, ...]:
    if not isinstance(value, Collection):
        return ()
    if place is ANY:
        return value.items if value.kind in ("list", "tuple") else ()
    entry = value.entry(place)
    if entry is None and isinstance(place, int) and value.kind == "list" and value.open:
        return value.items  # one of those that a loop appends
    return (entry,) if entry is not None else ()
