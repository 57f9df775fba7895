"""What `zip`, `filter`, `next`, `list`, `tuple` and `dict` give, of containers whose elements are known."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.program.values import Collection, Known, Value
from mpdoctor.source.interpreter.containers import contents_of, dictionary, element_of
from mpdoctor.source.interpreter.state.scopes import Keywords
from mpdoctor.source.joining import joined

MOST_ZIPPED = 6  # elements of lists that are put together one by one


def zipped(args: tuple[Value, ...], location: Location) -> Value | None:
    """`zip(*rows)`, of rows that are known as a whole."""
    columns = [contents_of(given) for given in args]
    rows = [column.items for column in columns if isinstance(column, Collection) and not column.open]
    is_known = len(rows) == len(columns) and all(0 < len(row) <= MOST_ZIPPED for row in rows)
    if not is_known or any(isinstance(column, Collection) and column.kind in ("dict", "set") for column in columns):
        return None
    pairs = tuple(Collection(location, "tuple", pair) for pair in zip(*rows, strict=False))
    return Collection(location, "list", pairs) if pairs else None


def filtered(args: tuple[Value, ...], location: Location) -> Value | None:
    """Any of the elements may be left out."""
    given = contents_of(args[1]) if len(args) == 2 else None
    if isinstance(given, Collection) and given.kind in ("list", "tuple"):
        return Collection(location, "list", given.items, (), True, uniform=given.uniform)
    return given


def next_of(args: tuple[Value, ...], location: Location) -> Value | None:
    """Of a generator of the user's own: any of what it gives."""
    given = contents_of(args[0]) if args else None
    is_generator = given is not None and given is not args[0]
    return joined((element_of(given, location), *args[1:2])) if given is not None and is_generator else None


def sequence_of(kind: str, args: tuple[Value, ...], location: Location) -> Value | None:
    """`list(…)` and `tuple(…)`."""
    if not args:
        return Collection(location, kind)
    given = contents_of(args[0])
    if len(args) == 1 and isinstance(given, Collection) and given.kind != "dict":
        return Collection(location, kind, given.items, (), given.open, uniform=given.uniform)
    return None


def dict_of(args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location) -> Value | None:
    """`dict(dtype=…)`, `dict(defaults, dtype=…)`, `dict(pairs)`."""
    keys = tuple(Known(location, key) for key, _ in keywords)
    items = tuple(value for _, value in keywords)
    if not args:
        return Collection(location, "dict", items, keys, is_open)
    first = _dict_given(args[0], location) if len(args) == 1 and not is_open else None
    return None if first is None else dictionary(location, (*first.keys, *keys), (*first.items, *items), first.open)


def _dict_given(given: Value, location: Location) -> Collection | None:
    """Of another dict, or of pairs that are all known."""
    held = contents_of(given)
    if not isinstance(held, Collection) or held.uniform:
        return None
    if held.kind == "dict":
        return held
    pairs = [pair.items for pair in held.items if isinstance(pair, Collection) and not pair.open]
    if held.open or len(pairs) < len(held.items) or any(len(pair) != 2 for pair in pairs):
        return None
    return dictionary(location, [key for key, _ in pairs], [item for _, item in pairs], False)
