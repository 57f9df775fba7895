"""The dtype of several values that meet: to which keras.ops promotes them, and what they must have to agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.knowledge.dtypes.result_dtypes import KEEPING_INTEGERS, TAKING_FLOATS_FOR_FLOAT32
from mpdoctor.program.dtypes.array_dtypes import dtype_of_array
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, Dtypes
from mpdoctor.program.dtypes.python_numbers import are_floats, is_number, kind_of_number, leaves, may_be_floats, spread
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Collection, Known, Value, agreed, options, walk

WHOLE = frozenset(("int32", "int64", "bool"))
_MOST_PARTS = 50  # of a value that are looked at


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


def dtype_by_others(dtypes: Dtypes, joined: Sequence[Value], depth: int) -> str | None:
    """The 16-bit dtype, or AUTOCAST, of some of these, where nothing is known of the others, which are made in the
    function: where they must agree, so are those. A second input of a layer may be float32, and raise. A weight alone
    tells no 16 bits: its layer may have been given another dtype by hand."""
    of_others = [part for part in joined if dtypes.of(part, depth) is None]
    known_parts = [part for part in joined if dtypes.of(part, depth) is not None]
    is_given = any(isinstance(inner, Parameter) for part in of_others for inner in options(part))
    dtype = agreed(dtypes.of(part, depth) for part in known_parts)
    is_told = dtype == AUTOCAST or (dtype in HALF and any(map(_is_computed, known_parts)))
    return dtype if is_told and of_others and not is_given else None


def _is_computed(part: Value) -> bool:
    """Whether it is no weight on any path."""
    return all(
        isinstance(choice, Operation) or (isinstance(choice, Call) and choice.method != "add_weight")
        for choice in options(part)
    )


def may_be_autocast(dtypes: Dtypes, value: Value, depth: int) -> bool:
    """Whether a tensor of an unknown dtype may take its dtype from something autocast. What a part of a known dtype is
    made of does not matter, such as the shape of a `tf.random.normal`; what an unknown layer is given does."""
    waiting, seen = [value], {value}
    for part in waiting:
        dtype = dtypes.of(part, depth + 1)
        if dtype == AUTOCAST or len(waiting) >= _MOST_PARTS:
            return True
        if dtype is None and isinstance(part, Call) and not isinstance(part.callee, Api):
            behind = list(islice(walk(part), _MOST_PARTS))
            if len(behind) == _MOST_PARTS or any(dtypes.of(inner, depth + 1) == AUTOCAST for inner in behind):
                return True
        elif dtype is None:
            new = [inner for inner in part.parts if not isinstance(inner, (Known, Api)) and inner not in seen]
            waiting += new
            seen.update(new)
    return False
