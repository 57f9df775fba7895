"""Facts as plain JSON values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from mpdoctor.facts.location import LineInCell, Location, shown_location
from mpdoctor.facts.model import ModelFacts


def object_from_call(model: ModelFacts) -> dict[str, Any]:
    place = model.call.location
    return {**(object_from_place(place) or {"path": None, "line": None}), "kind": model.call.kind}


def object_from_place(place: Location | None) -> dict[str, Any] | None:
    if place is None:
        return None
    shown = shown_location(place)
    return {"path": shown.path, "line": shown.line, **({"cell": shown.cell} if shown.cell else {})}


def plain(value: Any) -> Any:
    """What JSON can hold: dataclasses as objects, and the numbers that it lacks as "nan", "inf", "-inf"."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        record = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        line = getattr(value, "line", None)
        return {**record, "line": line.number, "cell": line.cell} if isinstance(line, LineInCell) else record
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(inner) for inner in value)
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return str(value)
