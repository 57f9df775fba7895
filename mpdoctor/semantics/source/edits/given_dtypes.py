"""Edits of calls that make layers or draw numbers: the dtype that they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpdoctor.finding import Edit
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api
from mpdoctor.semantics.source.edits.expressions import argument_replaced, with_keyword

if TYPE_CHECKING:
    from mpdoctor.semantics.source.operands.declared_dtypes import DeclaredFloat32

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


def edit_of_draw(facts: SourceFacts, declared: DeclaredFloat32) -> Edit | None:
    """The edit that gives the dtype; None where nothing there names it."""
    if not declared.text or declared.dtype_to_give == f"{declared.name}.dtype" != f"{declared.text}.dtype":
        return None
    place, dtype = declared.call.location, declared.dtype_to_give
    replaced = argument_replaced(facts, place, "dtype", declared.dtype_at, dtype)
    return replaced or with_keyword(facts, place, "dtype", dtype)
