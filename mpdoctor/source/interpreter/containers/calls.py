"""What `zip`, `sorted`, `next`, `list`, `deque`, `dict` … give, of containers whose elements are known."""

from __future__ import annotations

import dataclasses

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.values import Collection, Known, Value, is_api, known
from mpdoctor.source.interpreter.containers.elements import contents_of, element_of, in_any_order
from mpdoctor.source.interpreter.containers.literals import chained, dictionary
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


def columns_of(row: Value, location: Location) -> Value | None:
    """What `zip(*rows)` gives of rows that are all as this one."""
    if not isinstance(row, Collection) or row.kind not in ("list", "tuple") or row.open or not row.items:
        return None
    columns = (Collection(location, "tuple", (item,), open=True, uniform=True) for item in row.items)
    return Collection(location, "list", tuple(columns))


def filtered(args: tuple[Value, ...], location: Location) -> Value | None:
    """The result of `filter(…)`: any of the elements may be left out."""
    given = contents_of(args[1]) if len(args) == 2 else None
    if isinstance(given, Collection) and given.kind in ("list", "tuple"):
        return Collection(location, "list", given.items, open=True, uniform=given.uniform)
    return given


def next_of(args: tuple[Value, ...], location: Location) -> Value | None:
    """The result of `next(…)`: any value that a generator of the user's gives. The same for `iter(…)`, since the first
    elements may have been taken already."""
    if not args:
        return None
    given = args[0]
    is_iterator = isinstance(given, Call) and is_api(given.callee, "builtins.iter") and len(given.args) == 1
    if isinstance(given, Call) and is_iterator:
        given = given.args[0]
    held = contents_of(given)
    return joined((element_of(held, location), *args[1:2])) if is_iterator or isinstance(held, Collection) else None


def one_of(args: tuple[Value, ...], location: Location) -> Value | None:
    """`random.choice(…)` of functions or layers: any of them. Which number or text it is says nothing."""
    held = contents_of(args[0]) if len(args) == 1 else None
    if not isinstance(held, Collection) or any(isinstance(item, Known) for item in held.items):
        return None
    return element_of(held, location)


def in_order(args: tuple[Value, ...], keywords: Keywords, location: Location) -> Value | None:
    """`sorted(…)`: of texts or of numbers that are all known their order, else any."""
    given = contents_of(args[0]) if args else None
    if not isinstance(given, Collection):
        return None
    held = [known(item) for item in (given.keys if given.kind == "dict" else given.items)]
    is_alike = len({type(value) for value in held}) == 1 and type(held[0]) in (str, int, float)
    if keywords or given.open or given.uniform or not is_alike:
        return in_any_order(given, location)
    return Collection(location, "list", tuple(Known(location, value) for value in sorted(held)))


def added_up(args: tuple[Value, ...], location: Location) -> Value | None:
    """The result of `sum(lists, [])`."""
    lists = contents_of(args[0]) if len(args) == 2 and isinstance(args[1], Collection) else None
    return chained(location, (args[1], *lists.items)) if isinstance(lists, Collection) and not lists.open else None


def queue_of(args: tuple[Value, ...], keywords: Keywords, location: Location) -> Value | None:
    """`collections.deque(…)`, which drops what was there first where it is given a length."""
    held = sequence_of("list", args[:1], location)
    is_short = len(args) > 1 or bool(keywords)
    return in_any_order(held, location) if isinstance(held, Collection) and is_short else held


def copied(args: tuple[Value, ...]) -> Value | None:
    """The result of `copy.copy(settings)`."""
    given = args[0] if args else None
    if isinstance(given, Collection):
        return dataclasses.replace(given)  # another one, which may be changed alone
    return given if isinstance(given, Known) else None


def mapping_of(args: tuple[Value, ...], location: Location) -> Value | None:
    """`types.MappingProxyType(settings)`, and `collections.ChainMap(own, defaults)`, where the first one counts."""
    dicts = [given for given in args if isinstance(given, Collection) and given.kind == "dict"]
    if not dicts or len(dicts) < len(args):
        return None
    keys = [key for held in reversed(dicts) for key in held.keys]
    items = [item for held in reversed(dicts) for item in held.items]
    return dictionary(location, keys, items, any(held.open for held in dicts))


def sequence_of(kind: str, args: tuple[Value, ...], location: Location) -> Value | None:
    """The result of `list(…)` or `tuple(…)`."""
    if not args:
        return Collection(location, kind)
    given = contents_of(args[0])
    if len(args) == 1 and isinstance(given, Collection) and given.kind != "dict":
        ending = given.ending if given.kind != "set" else 0
        return Collection(location, kind, given.items, (), given.open, ending, given.uniform)
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
    """The dict that `dict(given)` makes: of another dict, or of pairs that are all known."""
    held = contents_of(given)
    if not isinstance(held, Collection) or held.uniform:
        return None
    if held.kind == "dict":
        return held
    pairs = [pair.items for pair in held.items if isinstance(pair, Collection) and not pair.open]
    if held.open or len(pairs) < len(held.items) or any(len(pair) != 2 for pair in pairs):
        return None
    return dictionary(location, [key for key, _ in pairs], [item for _, item in pairs], is_open=False)
