"""Snapshot and restore of every live tf.Variable, so that a training step can be repeated without side effects."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator, List, Tuple

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasVariable


OURS = "mpdoctor_"
Snapshot = List[Tuple[tf.Variable, tf.Tensor]]


@contextmanager
def variables_put_back() -> Iterator[None]:
    """Put every variable back to its value at the end, whoever holds it: weights, statistics, seeds, metrics, counters,
    averages, gradients that a loop adds up by hand."""
    kept = snapshot_of_variables()
    try:
        yield
    finally:
        put_back(kept)


def snapshot_of_variables() -> Snapshot:
    """A copy of every live variable, in the host's memory so that it takes none of a GPU's."""
    with tf.device("CPU:0"):
        return [(variable, tf.identity(variable)) for variable in variables_alive()]


def put_back(kept: Snapshot) -> None:
    for variable, value in kept:
        variable.assign(value)


def all_have_values() -> bool:
    """Whether no variable was made while a graph was traced that was never run: such a one stays without a value."""
    gc.collect()
    return all(_has_value(variable) for variable in _variables_of_program())


def variables_alive() -> list[tf.Variable]:
    """The program's live variables that hold numbers."""
    return [variable for variable in _variables_of_program() if _has_value(variable)]


def _variables_of_program() -> Iterator[tf.Variable]:
    known: dict[type, bool] = {}  # a look-up costs a quarter of issubclass(), for a third of a million objects
    for candidate in gc.get_objects():
        # without asking the object: a lazy proxy's `__class__` may import something or raise
        kind = type(candidate)
        is_variable = known.get(kind)
        if is_variable is None:
            is_variable = known[kind] = issubclass(kind, BaseResourceVariable)
        if is_variable and is_of_program(candidate):
            yield candidate


def is_of_program(variable: KerasVariable) -> bool:
    """Whether a variable is the program's, with numbers, and not a mere node of a graph."""
    if not hasattr(getattr(variable, "_handle", None), "numpy") or OURS in variable.name:
        return False
    return variable.dtype.is_floating or variable.dtype.is_integer or variable.dtype.is_bool


def has_numbers(variable: KerasVariable) -> bool:
    """Whether it is a variable of the program's, with a value, and that are numbers."""
    return is_of_program(variable) and _has_value(variable)


def _has_value(variable: KerasVariable) -> bool:
    return bool(tf.raw_ops.VarIsInitializedOp(resource=variable._handle))  # type: ignore[attr-defined]
