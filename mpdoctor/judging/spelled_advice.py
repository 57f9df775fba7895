"""Spells a run's advice with the names that its file imports; the source stage has done so for its own advice."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed, Finding
from mpdoctor.program.source_facts import SourceFacts


def spelled(item: Finding | Crashed, sources: Mapping[str, SourceFacts], keras: Keras) -> Finding | Crashed:
    """`ops.cast(y_pred, "float32")` where the file of its line imports no TensorFlow. `keras`: which one ran."""
    if isinstance(item, Crashed) or item.location is None or "tf." not in item.help:
        return item
    facts = sources.get(item.location.path)
    if facts is None:
        return item
    from mpdoctor.semantics.source.edits.names import advice_in_names_of

    return dataclasses.replace(item, help=advice_in_names_of(dataclasses.replace(facts, keras=keras), item.help))
