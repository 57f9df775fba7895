"""A remedy that mpdoctor tried in place, made in the source as `mend` makes it."""

from __future__ import annotations

from typing import Any

from mpdoctor.facts.location import Location
from mpdoctor.fixes import texts
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.made.layers import MadeLayer, given_dtype


def edited(source: str, remedy: dict[str, Any], models: list[dict[str, Any]]) -> str:
    """Raises NoPlace where a layer's line does not show the call that makes it."""
    facts = SourceFacts("train.py", source)
    layers = {layer["path"]: layer for model in models for layer in model["layers"]}
    edits = []
    for path, place in zip(remedy["layers"], remedy["locations"], strict=True):
        live = layers.get(path, {})
        made = MadeLayer(
            path, live.get("class", ""), _place(place), _place(live.get("class_location")), path in remedy["with_parts"]
        )
        edits += given_dtype(made, lambda _: facts)
    return texts.edited(source, dict.fromkeys(edits))


def _place(place: dict[str, Any] | None) -> Location | None:
    return Location("train.py", place["line"]) if place else None
