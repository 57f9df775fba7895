"""To which dtype functions of keras.ops promote what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpdoctor.knowledge.dtypes.result_dtypes import KEEPING_INTEGERS, TAKING_FLOATS_FOR_FLOAT32
from mpdoctor.program.dtypes.array_dtypes import dtype_of_array
from mpdoctor.program.dtypes.python_numbers import are_floats, is_number, kind_of_number, leaves, may_be_floats, spread
from mpdoctor.program.values import Collection, Value, agreed

if TYPE_CHECKING:
    from mpdoctor.program.dtypes.library_results import Dtypes

WHOLE = frozenset(("int32", "int64", "bool"))


def promoted(dtypes: Dtypes, function: str, given: Sequence[Value], depth: int) -> str | None:
    """The dtype to which a function of keras.ops promotes what it is given; None if that of a part is not known."""
    found = {_dtype_that_counts(dtypes, function, value, depth) for value in given} - {""}
    floats = found - WHOLE
    if None in found or "float64" in found:
        return None
    if "float32" in floats or {"float16", "bfloat16"} <= floats:
        return "float32"
    if not floats and any(map(are_floats, zip(given))):
        return "float32"
    return agreed(floats or found) if floats or function in KEEPING_INTEGERS else None


def _dtype_that_counts(dtypes: Dtypes, function: str, value: Value, depth: int) -> str | None:
    """The dtype with which one argument of such a function counts; "" for a number, which takes the dtype of the
    others."""
    if isinstance(value, Collection):
        parts = spread(value)
        return "float32" if are_floats(parts) else None if may_be_floats(parts) else dtypes.agreed(parts, depth)
    if is_number(value):
        return "float32" if function in TAKING_FLOATS_FOR_FLOAT32 and are_floats((value,)) else ""
    return dtypes.of(value, depth) or dtype_of_array(value, lambda named: dtypes.named(named, depth + 1))


def are_integers(dtypes: Dtypes, values: Sequence[Value], depth: int) -> bool:
    """Whether they are Python's integers, or integer tensors."""
    return bool(values) and all(
        {kind_of_number(leaf) for leaf in leaves(value)} == {"int"} or dtypes.of(value, depth) in WHOLE
        for value in values
    )
