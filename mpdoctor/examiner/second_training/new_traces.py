"""Makes every tf.function of the process trace again: an old trace keeps the dtype policies that it was made with."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import Any, Iterator

import tensorflow as tf

# What a tf.function keeps of its traces: in TensorFlow 2.4 to 2.12, and since.
_TRACES = (
    "_created_variables",
    "_stateful_fn",
    "_stateless_fn",
    "_concrete_stateful_fn",
    "_lifted_initializer_graph",
    "_graph_deleter",
    "_variable_creation_config",
    "_no_variable_creation_config",
    "_concrete_variable_creation_fn",
)
_CACHES = ("_function_cache", "_function_captures")  # since 2.13, shared by the traces' configurations


@contextmanager
def traced_anew() -> Iterator[None]:
    """Keras' train functions, the program's own step functions, each `call` under `@tf.function`: whatever a call of
    one reaches. Not a ConcreteFunction, nor what was loaded with a SavedModel: those are traces. Afterwards each has
    the traces that it had before."""
    before = [(function, dict(vars(function))) for function in _functions()]
    _forget([function for function, _ in before])
    try:
        yield
    finally:
        known = {id(function) for function, _ in before}
        _forget([function for function in _functions() if id(function) not in known])
        for function, kept in before:
            vars(function).clear()
            vars(function).update(kept)


def _functions() -> list[Any]:
    kind = type(tf.function(lambda: None))
    return [candidate for candidate in gc.get_objects() if type(candidate) is kind]


def _forget(functions: list[Any]) -> None:
    for function in functions:
        attributes = vars(function)
        attributes.update({name: None for name in _TRACES if name in attributes})
        attributes.update({name: type(attributes[name])() for name in _CACHES if name in attributes})
