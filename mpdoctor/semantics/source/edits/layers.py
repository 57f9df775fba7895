"""Edits of the calls that make layers: their dtype."""

from __future__ import annotations

from mpdoctor.finding import Edit
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api
from mpdoctor.semantics.source.edits.expressions import with_keyword

FLOAT32 = '"float32"'
LAYERS = "keras.layers."


def with_dtype(facts: SourceFacts, layer: Call, dtype: str) -> Edit | None:
    """The layer made with this dtype. None where a class of the user's own takes none, as keras.applications do."""
    if isinstance(layer.callee, Api) and not public_name(layer.callee.name).startswith(LAYERS):
        return None
    own = class_of(layer)
    initializer = own.find_method("__init__") if own is not None else None
    parameters = initializer.parameters if initializer is not None else ("dtype",)
    if "dtype" not in parameters and not any(name.startswith("**") for name in parameters):
        return None
    return with_keyword(facts, layer.location, "dtype", dtype)


def in_float32(facts: SourceFacts, layer: Call) -> Edit | None:
    return with_dtype(facts, layer, FLOAT32)
