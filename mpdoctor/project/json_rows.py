"""Values of chosen classes as JSON and back: nothing else is ever made of what a file holds.

Texts, numbers and None stand for themselves, a dict for one with texts as keys. A list begins with what it is: a list,
a tuple, or one of the classes, which is followed by those of its fields that differ from what they are by default.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any

Row = Any  # what the module `json` reads and writes
_PLAIN = (str, float, bool, type(None))
_MOST_BITS = 10_000  # of a whole number: Python reads no longer one back


class Rows:
    """`classes`: dataclasses, and enums of texts, each under its own name."""

    def __init__(self, *classes: type) -> None:
        self._classes: dict[str, Any] = {kept.__name__: kept for kept in classes}
        self._defaults_of: dict[str, dict[str, Any]] = {}

    def from_value(self, value: Any) -> Row:
        """The value as JSON. Raises TypeError for one that could not be read back."""
        kind = type(value)
        if kind in _PLAIN or (kind is int and value.bit_length() < _MOST_BITS):
            return value
        if kind in (tuple, list):
            return [kind.__name__, *map(self.from_value, value)]
        if kind is dict and all(type(key) is str for key in value):
            return {key: self.from_value(inner) for key, inner in value.items()}
        if self._classes.get(kind.__name__) is not kind:
            raise TypeError(f"{kind.__name__} does not belong into the cache")
        if isinstance(value, Enum):
            return [kind.__name__, {"value": value.value}]
        fields = ((name, getattr(value, name), default) for name, default in self._defaults(kind.__name__).items())
        return [kind.__name__, {name: self.from_value(inner) for name, inner, default in fields if inner != default}]

    def value(self, row: Row) -> Any:
        if type(row) is dict:
            return {key: inner if type(inner) in _PLAIN else self.value(inner) for key, inner in row.items()}
        if type(row) is not list:
            return row
        kind, *inner = row
        if kind == "tuple":
            return tuple([self.value(item) for item in inner])
        if kind == "list":
            return [self.value(item) for item in inner]
        return self._classes[kind](**self.value(inner[0]))

    def _defaults(self, kind: str) -> dict[str, Any]:
        """The defaults of the fields by name; `MISSING`, which equals nothing, for a field without one."""
        if kind not in self._defaults_of:
            self._defaults_of[kind] = {
                field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
                for field in dataclasses.fields(self._classes[kind])
            }
        return self._defaults_of[kind]
