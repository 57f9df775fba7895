"""Applies a function to every string in a diagnosis, so that escaping and redaction cannot miss a field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

Held = TypeVar("Held")
# A text, and the field that it stands in, or somewhere in: "Finding.message".
Clean = Callable[[str, str], str]
_WITHOUT = (int, float, bool, type(None))
_NAMES: dict[Any, dict[str, str]] = {}  # of types, of which there are few


def with_every_string(held: Held, clean: Clean) -> Held:
    """The same data with `clean` applied to every string in it, in tuples and in keys of mappings too. Unchanged parts
    stay the same objects."""
    cleaned: Held = _with_cleaned_strings(held, clean, "")
    return cleaned


def strings_of(held: Any) -> Iterator[str]:
    """Every string in the data, in tuples and in keys and values of mappings."""
    if isinstance(held, str):
        yield held
    elif isinstance(held, Mapping):
        for both in held.items():
            yield from strings_of(both)
    elif isinstance(held, tuple | list | set | frozenset):
        for item in held:
            yield from strings_of(item)
    else:
        for name in _fields(type(held)):
            yield from strings_of(getattr(held, name))


def _with_cleaned_strings(held: Any, clean: Clean, field: str) -> Any:
    if type(held) in _WITHOUT or isinstance(held, Enum):
        return held
    if isinstance(held, str):
        return clean(held, field)
    if isinstance(held, Mapping):
        return {
            _with_cleaned_strings(key, clean, field): _with_cleaned_strings(value, clean, field)
            for key, value in held.items()
        }
    if isinstance(held, tuple | list | set | frozenset):
        cleaned = [_with_cleaned_strings(item, clean, field) for item in held]
        changed = any(after is not before for after, before in zip(cleaned, held, strict=True))
        return type(held)(cleaned) if changed else held
    changed_fields = {
        name: after
        for name, full_name in _fields(type(held)).items()
        if (after := _with_cleaned_strings(before := getattr(held, name), clean, full_name)) is not before
    }
    return dataclasses.replace(held, **changed_fields) if changed_fields else held


def _fields(kind: Any) -> dict[str, str]:
    """The names of a dataclass' fields, and those with its own before them; nothing of any other type."""
    if kind not in _NAMES:
        fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
        _NAMES[kind] = {field.name: f"{kind.__name__}.{field.name}" for field in fields}
    return _NAMES[kind]
