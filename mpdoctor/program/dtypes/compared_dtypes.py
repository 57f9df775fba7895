"""Comparisons of dtypes that the program writes out."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.dtype_names import NAMES
from mpdoctor.program.values import Api, Collection, Known, Value

_DTYPES = {name: dtype for name, dtype in NAMES.items() if name not in ("bool_", "float", "int_", "str")}


def compared_dtypes(symbol: str, left: Value, right: Value) -> Value | None:
    """The result of `dtype == tf.float16` or `dtype in (tf.float16, tf.bfloat16)`, of dtypes that are known; else
    None."""
    is_in = symbol in ("in", "not in")
    if is_in and not (isinstance(right, Collection) and right.kind != "dict" and not right.open):
        return None
    others = right.items if is_in and isinstance(right, Collection) else (right,)
    equal = {_are_equal_dtypes(left, other) for other in others}
    if None in equal or symbol not in ("==", "!=", "in", "not in"):
        return None
    return Known(left.location, (True in equal) == (symbol in ("==", "in")))


def _are_equal_dtypes(one: Value, other: Value) -> bool | None:
    """Whether two dtypes are equal, by TensorFlow's rules for comparing its dtypes with those of NumPy and with names;
    None where that is not known."""
    pair = (one, other)
    dtypes = [_dtype_written(value) for value in pair]
    is_tensorflows = any(isinstance(value, Api) and value.name.startswith("tensorflow.") for value in pair)
    are_both_api = all(isinstance(value, Api) for value in pair)
    return dtypes[0] == dtypes[1] if None not in dtypes and (is_tensorflows or are_both_api) else None


def _dtype_written(value: Value) -> str | None:
    if isinstance(value, Known):
        return value.value if value.value in _DTYPES.values() else None
    place, _, name = public_name(value.name).rpartition(".") if isinstance(value, Api) else ("", "", "")
    return _DTYPES.get(name) if place in ("tensorflow", "numpy") else None
