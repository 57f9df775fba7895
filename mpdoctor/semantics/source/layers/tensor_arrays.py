"""What is written into a TensorArray, and where that array is made."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Attribute, Value, is_api, options
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype

WRITING = {"write": 1, "scatter": 1, "unstack": 0, "split": 0}  # methods, and where the value stands
LONGEST = 40


def writes_into_arrays(facts: SourceFacts) -> Iterator[tuple[Call, Call, Value]]:
    """(write, array, value) for each method that writes a value into a TensorArray which the program makes, where it
    does not ask for a dtype."""
    for write in facts.method_calls(*WRITING):
        value, array = write.argument(WRITING[write.method], "value"), array_behind(write.receiver)
        if value is not None and array is not None and not asks_for_dtype(write.context):
            yield write, array, value


def array_behind(array: Value | None) -> Call | None:
    """The TensorArray that is written, also after other writes (each returns a new one)."""
    for item in options(array)[:LONGEST]:
        if isinstance(item, Call) and is_api(item.callee, "tensorflow.TensorArray"):
            return item
        if isinstance(item, Call) and isinstance(item.callee, Attribute) and item.callee.name in WRITING:
            return array_behind(item.callee.of)
    return None
