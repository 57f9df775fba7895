"""The values with a dtype that a failing line names."""

from __future__ import annotations

from types import FrameType
from typing import Iterator

import tensorflow as tf

from mpdoctor.examiner.capture.layer_calls import dtype_name, flat_tensors, is_symbolic
from mpdoctor.examiner.exceptions import chain_of
from mpdoctor.examiner.process.user_code import code_of_line, names_in, own_code
from mpdoctor.facts.failure import OperandFacts
from mpdoctor.facts.location import Location

_DTYPES = frozenset(tf.dtypes.as_dtype(number).name for number in (*range(1, 15), 17, 18, 19, 22, 23))


def operands_of_line(error: BaseException, place: Location) -> tuple[OperandFacts, ...]:
    """The values with a dtype that the line names, looked up where the error arose without running anything of the
    program's: no property is asked."""
    frame = _innermost_frame(error)
    if frame is None:
        return ()
    operands: dict[OperandFacts, None] = {}
    for name in names_in(code_of_line(place)):
        for operand in _operands(name, frame):
            operands[operand] = None
    return tuple(operands)


def _innermost_frame(error: BaseException) -> FrameType | None:
    """The innermost frame of the program's own, of the first error of a chain: autograph makes new ones of it."""
    innermost = None
    for cause in chain_of(error):
        trace = cause.__traceback__
        while trace is not None:
            if own_code(trace.tb_frame):
                innermost = trace.tb_frame
            trace = trace.tb_next
    return innermost


def _operands(name: str, frame: FrameType) -> Iterator[OperandFacts]:
    first, *rest = name.split(".")
    value, known = frame.f_locals.get(first, frame.f_globals.get(first)), first
    for attribute in rest:
        if _tensors(value) or not hasattr(value, "__dict__"):
            break
        value, known = vars(value).get(attribute), f"{known}.{attribute}"
    for tensor in _tensors(value):
        yield OperandFacts(known, _kind(tensor), dtype_name(tensor))


def _tensors(value: object) -> list[tf.Tensor]:
    """Classes have a `dtype` too, and what autograph puts in place of an unset name has every attribute."""
    return [
        tensor for tensor in flat_tensors(value) if not isinstance(tensor, type) and str(dtype_name(tensor)) in _DTYPES
    ]


def _kind(value: object) -> str:
    if type(value).__module__ == "numpy":
        return "array"
    if type(value).__name__.startswith("AutoCast"):
        return "weight"
    if isinstance(value, tf.Variable):
        return "variable"
    made_by_keras = type(value).__module__.partition(".")[0] in ("keras", "tf_keras")
    return "weight" if made_by_keras and not is_symbolic(value) else "tensor"
