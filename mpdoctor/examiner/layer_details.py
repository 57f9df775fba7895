"""What a live layer was told, what its code says, and what it keeps beside its weights."""

from __future__ import annotations

import inspect
import os
from types import CodeType, FunctionType
from typing import Any, Collection, Iterator

import numpy
import tensorflow as tf

from mpdoctor.examiner.ownership import class_location, is_own
from mpdoctor.facts.layer_details import ConfigFacts, RawVariableFacts, SettingsFacts
from mpdoctor.facts.location import Location

_WIDTHS = ("units", "filters", "output_dim")
_LEARNT = {"Rescaling": ("scale", "offset"), "Normalization": ("mean", "variance")}
# Whoever writes one of these thinks of dtypes.
_ABOUT_DTYPES = ("cast", "dtype", "astype", "float16", "float32", "float64", "half", "double")
_DEEPEST = 4  # calls of the user's own functions that are followed


def settings_from_layer(layer: Any) -> SettingsFacts:
    class_name = type(layer).__name__
    widths = (getattr(layer, name, None) for name in _WIDTHS)
    return SettingsFacts(
        epsilon=_number(getattr(layer, "epsilon", None)),
        width=next((width for width in widths if isinstance(width, int)), None),
        rows=_whole(getattr(layer, "input_dim", None)) if class_name == "Embedding" else None,
        groups=_whole(getattr(layer, "groups", None)),
        activation=_name_of_function(getattr(layer, "activation", None)),
        normalizes=class_name == "UnitNormalization" or getattr(layer, "normalize", None) is True,
        constants=tuple(
            (name, *magnitudes)
            for name in _LEARNT.get(class_name, ())
            for magnitudes in _magnitudes(getattr(layer, name, None))
        ),
    )


def config_from_layer(layer: Any) -> ConfigFacts | None:
    """None for a class of a library's."""
    own = _own_classes(type(layer))
    if not own:
        return None
    parameters = inspect.signature(type(layer).__init__).parameters.values()
    config_at = _place_of_method(own, "get_config")
    return ConfigFacts(
        takes_dtype=any(one.name == "dtype" or one.kind is one.VAR_KEYWORD for one in parameters),
        holds_dtype=None if config_at is None else _holds_dtype(layer),
        constructor_at=_place_of_method(own, "__init__"),
        config_at=config_at,
    )


def names_dtype(layer: Any) -> bool:
    """Whether the user's code of a layer speaks of dtypes anywhere, in functions of the user's that it calls too."""
    functions = [one for cls in _own_classes(type(layer)) for one in vars(cls).values() if inspect.isfunction(one)]
    function = getattr(layer, "function", None)
    if inspect.isfunction(function):
        functions.append(function)
    seen: set[CodeType] = set()
    words = [word.lower() for one in functions for word in _words(one, seen, _DEEPEST)]
    return any(about in word for word in words for about in _ABOUT_DTYPES)


def raw_variables_from_layer(layer: Any, loss: Any, sources: Collection[int]) -> tuple[RawVariableFacts, ...]:
    """`loss`: what was differentiated last, None where nothing was; those by which it was, the program trains itself.
    `sources`: their identities."""
    return tuple(
        RawVariableFacts(name, value.dtype.name, bool(value.trainable), _reaches(value, loss))
        for name, value in vars(layer).items()
        if isinstance(value, tf.Variable) and id(value) not in sources
    )


# --- its code -----------------------------------------------------------------------------------------------------
def _own_classes(cls: type) -> list[type]:
    return [one for one in cls.__mro__ if class_location(one) is not None]


def _place_of_method(classes: list[type], name: str) -> Location | None:
    method = next((vars(cls)[name] for cls in classes if name in vars(cls)), None)
    code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
    return None if code is None else Location(os.path.abspath(code.co_filename), code.co_firstlineno)


def _words(function: FunctionType, seen: set[CodeType], depth: int) -> Iterator[str]:
    code = function.__code__
    if code in seen or not depth:
        return
    seen.add(code)
    waiting = [code]
    while waiting:
        one = waiting.pop()
        yield from one.co_names
        for constant in one.co_consts:
            if isinstance(constant, str):
                yield constant
            elif isinstance(constant, CodeType):
                waiting.append(constant)
        for name in one.co_names:
            called = function.__globals__.get(name)
            if inspect.isfunction(called) and is_own(called.__code__.co_filename):
                yield from _words(called, seen, depth - 1)


def _holds_dtype(layer: Any) -> bool | None:
    try:
        return "dtype" in layer.get_config()
    except Exception:  # the user's own code, which may not be meant to be saved
        return None


# --- its values ---------------------------------------------------------------------------------------------------
def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _name_of_function(value: Any) -> str:
    return value if isinstance(value, str) else getattr(value, "__name__", "")


def _magnitudes(value: Any) -> Iterator[tuple[float, float]]:
    """(largest, smallest that is not 0); nothing where there are no numbers, as before adapt()."""
    if value is None:
        return
    try:
        flat = numpy.abs(numpy.asarray(value, dtype="float64")).ravel()
    except (TypeError, ValueError, NotImplementedError):  # a symbolic tensor, or one of a graph
        return
    if flat.size:
        yield float(flat.max()), float(flat[flat > 0].min()) if (flat > 0).any() else 0.0


# --- whether the loss depends on a variable -------------------------------------------------------------------------
def _reaches(variable: Any, loss: Any) -> bool | None:
    graph = getattr(loss, "graph", None) if loss is not None and not hasattr(loss, "numpy") else None
    if graph is None:
        return None
    handle = _handle_in(graph, variable.handle)
    return handle is not None and any(
        op.type in ("ReadVariableOp", "ResourceGather") and op.inputs[0] is handle for op in _operations_behind(loss.op)
    )


def _handle_in(graph: Any, handle: Any) -> Any:
    """What stands for a variable inside of a graph, or a graph inside of that; None where it has no part in it."""
    outer = getattr(graph, "outer_graph", None)
    outside = handle if getattr(outer, "captures", None) is None else _handle_in(outer, handle)
    return next((inside for captured, inside in graph.captures if captured is outside or captured is handle), None)


def _operations_behind(operation: Any) -> Iterator[Any]:
    seen, waiting = {operation}, [operation]
    while waiting:
        one = waiting.pop()
        yield one
        for tensor in one.inputs:
            if tensor.op not in seen:
                seen.add(tensor.op)
                waiting.append(tensor.op)
