"""The names in the user's line for the inputs of an operation, and the magnitude of each."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.process.user_code import code_of_line, names_in, own_code
from mpdoctor.examiner.replay.magnitudes import array_from_tensor, is_floating
from mpdoctor.facts.location import Location
from mpdoctor.facts.training import UNCOUNTABLE, NamedOperand

_NUMBER = re.compile(r"(?<![\w.])-?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_MOST = 4


def named_operands(inputs: list[tf.Tensor], place: Location | None) -> tuple[NamedOperand, ...]:
    """The inputs of the running operation that the user's line has a name for. Runs nothing of the program: no property
    is read."""
    frame = _own_frame()
    if frame is None or place is None:
        return ()
    given = {tensor._id for tensor in inputs if is_floating(tensor)}
    shapes = [tuple(tensor.shape) for tensor in inputs if is_floating(tensor)]
    operands = {}
    for name in names_in(code_of_line(place)):
        value = _value(name, frame)
        if isinstance(value, tf.Variable):
            if tuple(value.shape) in shapes and value.dtype.is_floating:
                operands[name] = _largest(value.read_value())
        elif getattr(value, "_id", None) in given and tf.is_tensor(value):
            operands[name] = _largest(value)
    return tuple(NamedOperand(name, largest) for name, largest in list(operands.items())[:_MOST])


def constant_beyond(place: Location | None, dtype: str) -> NamedOperand | None:
    """The first number that the line of an operation that runs now names or writes down, and that is inf in `dtype`.
    Nothing of the program's is run."""
    frame = _own_frame()
    if frame is None or place is None or dtype != "float16":
        return None
    text = code_of_line(place)
    named = [(name, _value(name, frame)) for name in names_in(text)]
    written = [(number, float(number.replace("_", ""))) for number in _NUMBER.findall(text)]
    for name, value in (*named, *written):
        is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, complex))
        if is_number and UNCOUNTABLE <= abs(value) < float("inf"):
            return NamedOperand(name, float(value))
    return None


def _own_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not own_code(frame):
        frame = frame.f_back
    return frame


def _value(name: str, frame: FrameType) -> Any:
    """The value of a name such as `h` or `self.scale`; a Keras variable is unwrapped."""
    first, *rest = name.split(".")
    value: Any = frame.f_locals.get(first, frame.f_globals.get(first))
    for attribute in rest:
        value = getattr(value, "__dict__", {}).get(attribute)
    inner = getattr(value, "__dict__", {}).get("_value")
    return inner if isinstance(inner, tf.Variable) else value


def _largest(tensor: tf.Tensor) -> float:
    """The largest finite magnitude; 0.0 where there is none."""
    values = np.abs(array_from_tensor(tensor))
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0
