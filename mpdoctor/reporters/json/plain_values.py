"""Facts as plain JSON values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts


def object_from_call(model: ModelFacts) -> dict[str, Any]:
    place = model.call.location
    return {
        "path": place.path if place else None,
        "line": place.line if place else None,
        "kind": model.call.kind,
    }


def object_from_place(place: Location | None) -> dict[str, Any] | None:
    return {"path": place.path, "line": place.line} if place else None


def plain(value: Any) -> Any:
    """What JSON can hold: dataclasses as objects, and the numbers that it lacks as "nan", "inf", "-inf"."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(inner) for inner in value)
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return str(value)
