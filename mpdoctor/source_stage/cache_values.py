"""What the cache keeps, as JSON and back. Only what is listed here is made of it.

Texts, numbers and None stand for themselves, a dict for one with texts as keys. A list begins with what it is: a list,
a tuple, or one of the classes, which is followed by those of its fields that differ from what they are by default.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from functools import cache
from typing import Any

from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import AlsoSeen, Edit, Finding, Fix, Severity
from mpdoctor.program.saved_file import SavedFile
from mpdoctor.program.source_facts import Problem, SourceFacts

Row = Any  # what the module `json` reads and writes
_PLAIN = (str, float, bool, type(None))
_MOST_BITS = 10_000  # of a whole number: Python reads no longer one back
_KEPT: dict[str, Any] = {
    kept.__name__: kept
    for kept in (AlsoSeen, Edit, Finding, Fix, Keras, Location, Problem, SavedFile, Severity, SourceFacts)
}


def row_from_value(value: Any) -> Row:
    """The value as JSON. Raises TypeError for one that could not be read back."""
    kind = type(value)
    if kind in _PLAIN or (kind is int and value.bit_length() < _MOST_BITS):
        return value
    if kind in (tuple, list):
        return [kind.__name__, *map(row_from_value, value)]
    if kind is dict and all(type(key) is str for key in value):
        return {key: row_from_value(inner) for key, inner in value.items()}
    if _KEPT.get(kind.__name__) is not kind:
        raise TypeError(f"{kind.__name__} does not belong into the cache")
    if isinstance(value, Enum):
        return [kind.__name__, {"value": value.value}]
    fields = ((name, getattr(value, name), default) for name, default in _defaults(kind.__name__).items())
    return [kind.__name__, {name: row_from_value(inner) for name, inner, default in fields if inner != default}]


def value_from_row(row: Row) -> Any:
    if type(row) is dict:
        return {key: inner if type(inner) in _PLAIN else value_from_row(inner) for key, inner in row.items()}
    if type(row) is not list:
        return row
    kind, *inner = row
    if kind == "tuple":
        return tuple([value_from_row(item) for item in inner])
    if kind == "list":
        return [value_from_row(item) for item in inner]
    return _KEPT[kind](**value_from_row(inner[0]))


@cache
def _defaults(kind: str) -> dict[str, Any]:
    """The defaults of the fields by name; `MISSING`, which equals nothing, for a field without one."""
    return {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(_KEPT[kind])
    }
