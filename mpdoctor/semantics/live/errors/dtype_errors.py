"""Parses TensorFlow's errors about two dtypes in one operation: 2.4 to 2.21, eager and in graphs."""

from __future__ import annotations

import re
from typing import NamedTuple

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF

NUMPY_NAMES = {"half": "float16", "float": "float32", "double": "float64"}  # of TensorFlow's own names for dtypes
_SIGNS = {"AddV2": "+", "Add": "+", "Sub": "-", "Mul": "*", "RealDiv": "/", "MatMul": "matmul", "ConcatV2": "concat",
          "Pack": "stack", "SelectV2": "where", "Einsum": "einsum"}  # fmt: skip
_WORDS = (
    r"Input '\w+' of '(?P<op>\w+)' Op has type (?P<one>\w+) that does not match type (?P<other>\w+)",
    r"cannot compute (?P<op>\w+) as input #\d+\(zero-based\) was expected to be an? (?P<one>\w+) tensor "
    r"but is an? (?P<other>\w+) tensor",
    r"Tensors in list passed to '\w+' of '(?P<op>\w+)' Op have types \[(?P<all>[^\]]*)\] that don't all match",
    r"`?x`? and `?y`? must have the same dtype, got tf\.(?P<one>\w+) != tf\.(?P<other>\w+)",
)
_CONVERTED = (
    r"Tensor conversion requested dtype (?P<to>\w+) for Tensor with dtype (?P<given>\w+)",
    r"Incompatible type conversion requested to type '(?P<to>\w+)' for AutoCastVariable which is casted to type "
    r"'(?P<given>\w+)'",
)


class DtypeMismatch(NamedTuple):
    """An operation by its sign or name, "" where the message names none, and the dtypes that it was given."""

    operation: str
    dtypes: frozenset[str]

    @property
    def half(self) -> str:
        return next(dtype for dtype in HALF if dtype in self.dtypes)

    @property
    def words(self) -> str:
        operation = f"`{self.operation}`" if self.operation else "one operation"
        return f"{operation} is given {' and '.join(sorted(self.dtypes))}"


def mismatch_from_failure(failure: FailureFacts) -> DtypeMismatch | None:
    """The operation that was given tensors of two dtypes, whichever these are; None for other errors."""
    for words in _WORDS:
        match = re.search(words, failure.said_by_library)
        if match is None:
            continue
        parts = match.groupdict()
        named = parts["all"].split(", ") if parts.get("all") else [parts["one"], parts["other"]]
        operation = (parts.get("op") or "").removeprefix("_Mkl")
        return DtypeMismatch(_SIGNS.get(operation, operation), frozenset(NUMPY_NAMES.get(name, name) for name in named))
    return None


def mismatch_of_precisions(failure: FailureFacts) -> DtypeMismatch | None:
    """A 16-bit tensor and a float32 one in one operation, in a program that computes in 16 bits; None for whatever else
    was raised: whole numbers and float64 clash without mixed precision, too."""
    mismatch = mismatch_from_failure(failure)
    if mismatch is None or not failure.computes_in_half:
        return None
    return (
        mismatch if len(mismatch.dtypes) == 2 and "float32" in mismatch.dtypes and mismatch.dtypes & set(HALF) else None
    )


def half_given_for_float32(failure: FailureFacts) -> str | None:
    """The 16-bit dtype of a tensor that was to be converted to float32, as assign() does; None for other errors."""
    wanted, given = _conversion_refused(failure)
    return given if wanted == "float32" and given in HALF else None


def float32_given_for_half(failure: FailureFacts) -> str | None:
    """The 16-bit dtype that a float32 tensor was to be converted to; None for other errors."""
    wanted, given = _conversion_refused(failure)
    return wanted if given == "float32" and wanted in HALF else None


def _conversion_refused(failure: FailureFacts) -> tuple[str, str]:
    """The dtype that was wanted, and that of the tensor; "" of other errors."""
    matches = (re.search(words, failure.said_by_library) for words in _CONVERTED if failure.computes_in_half)
    return next(((each["to"], each["given"]) for each in matches if each is not None), ("", ""))


def array_of_another_dtype(failure: FailureFacts) -> str | None:
    """The 16-bit dtype of what was written into a TensorArray of float32; None for other errors."""
    said = failure.said_by_library if failure.computes_in_half else ""
    match = re.search(r"TensorArray dtype is float32 but Op is trying to write dtype (\w+)", said)
    match = match or re.search(r"Invalid data types; op elements (\w+) but list elements float\b", said)
    match = match or re.search(r"Expected list with element dtype (\w+) but got list with element dtype float\b", said)
    dtype = NUMPY_NAMES.get(match[1], match[1]) if match else ""
    return dtype if dtype in HALF else None


def half_added_to_float32(failure: FailureFacts) -> str | None:
    """The 16-bit dtype of a loss in a list of losses that Keras adds up in float32; None for other errors."""
    match = re.search(
        r"Cannot convert a list containing a tensor of dtype <dtype: '(b?float16)'> to <dtype: 'float32'>",
        failure.said_by_library,
    )
    if match is not None:
        return match[1]
    mismatch = mismatch_of_precisions(failure)
    return mismatch.half if mismatch is not None else None
