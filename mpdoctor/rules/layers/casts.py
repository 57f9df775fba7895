"""Casts, and what becomes of their result."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.dtypes import dtype_named
from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.values import Call, Value, is_api, walk

CASTS = ("tensorflow.cast", "tensorflow.saturate_cast", "keras.ops.cast", "keras.backend.cast")
KEEPERS = ("assign", "assign_add", "assign_sub", "add_loss", "add_metric", "update_state", "add_update")


def casts(facts: SourceFacts) -> Iterator[tuple[Call, str]]:
    """Every cast whose dtype is known, with that dtype."""
    for call in facts.calls_of(*CASTS):
        dtype = dtype_named(call.argument(1, "dtype"), facts.keras)
        if dtype is not None:
            yield call, dtype


def is_cast(value: Value) -> bool:
    return isinstance(value, Call) and is_api(value.callee, *CASTS)


def is_cast_to(facts: SourceFacts, value: Value, dtypes: tuple[str, ...]) -> bool:
    """Whether what is computed from a value is cast to one of these dtypes later on."""
    later = (call for call, dtype in casts(facts) if dtype in dtypes and call is not value)
    return any(any(part is value for part in walk(call.argument(0, "x"))) for call in later)


def is_kept(facts: SourceFacts, value: Value) -> bool:
    """Whether what is computed from a value is assigned to a variable, or is a loss or metric of the layer's own."""
    for call in facts.method_calls(*KEEPERS):
        if any(part is value for one in (*call.args, *(item for _, item in call.keywords)) for part in walk(one)):
            return True
    return False
