"""The published schemas of mpdoctor's own JSON, and reports held against them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

import mpdoctor

SCHEMAS = Path(mpdoctor.__file__).parent / "reporters" / "json" / "schema"


@functools.cache
def schema(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return read


def assert_fits(report: Any, name: str = "diagnosis-1.json") -> None:
    """Hold a report against this schema, which may refer to that of a diagnosis."""
    jsonschema = pytest.importorskip("jsonschema")
    from referencing import Registry, Resource

    diagnosis = Resource.from_contents(schema("diagnosis-1.json"))
    jsonschema.Draft202012Validator.check_schema(schema(name))
    registry = Registry().with_resource("diagnosis-1.json", diagnosis)
    jsonschema.Draft202012Validator(schema(name), registry=registry).validate(report)
