"""From a live layer to its settings and configuration, and whether the user's code of it names a dtype."""

from __future__ import annotations

import contextlib
import inspect
import os
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Iterator

import numpy

from mpdoctor.examiner.process.user_code import class_location, is_own
from mpdoctor.facts.layer import ConfigFacts, SettingsFacts
from mpdoctor.facts.location import Location
from mpdoctor.knowledge.layer_kinds import OF_BASE_CONFIG

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer


_WIDTHS = ("units", "filters", "output_dim")
_LEARNT = {"Rescaling": ("scale", "offset"), "Normalization": ("mean", "variance")}
# Whoever writes one of these thinks of dtypes.
_ABOUT_DTYPES = ("cast", "dtype", "astype", "float16", "float32", "float64", "half", "double")
_DEEPEST = 4  # calls of the user's own functions that are followed


def settings_from_layer(layer: KerasLayer) -> SettingsFacts:
    """The settings of a live layer that rules ask for: widths, epsilon, constants, activation."""
    class_name = type(layer).__name__
    widths = (_whole(_attribute(layer, name)) for name in _WIDTHS)
    return SettingsFacts(
        epsilon=_number(_attribute(layer, "epsilon")),
        width=next((width for width in widths if width is not None), None),
        rows=_whole(_attribute(layer, "input_dim")) if class_name == "Embedding" else None,
        groups=_whole(_attribute(layer, "groups")),
        activation=_name_of_function(_attribute(layer, "activation")),
        normalizes=class_name == "UnitNormalization" or _attribute(layer, "normalize") is True,
        constants=tuple(
            (name, *magnitudes)
            for name in _LEARNT.get(class_name, ())
            for magnitudes in _magnitudes(_attribute(layer, name))
        ),
    )


def config_from_layer(layer: KerasLayer) -> ConfigFacts | None:
    """What the layer's class does with its configuration; None for a class of a library's, and for one with a
    `from_config` of its own."""
    own = _own_classes(type(layer))
    if not own or any("from_config" in vars(cls) for cls in own):
        return None
    parameters = inspect.signature(type(layer).__init__).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    config_at = _place_of_method(own, "get_config")
    return ConfigFacts(
        takes_dtype=takes_any or "dtype" in parameters,
        takes_base=takes_any or all(name in parameters for name in OF_BASE_CONFIG),
        holds_dtype=None if config_at is None else _holds_dtype(layer),
        constructor_at=_place_of_method(own, "__init__"),
        config_at=config_at,
    )


def names_dtype(layer: KerasLayer) -> bool:
    """Whether the user's code of a layer mentions dtypes anywhere, also in functions of the user's that it calls."""
    members = [member for cls in _own_classes(type(layer)) for member in vars(cls).values()]
    seen: set[CodeType] = set()
    words = (
        word.lower()
        for member in [*members, _attribute(layer, "function")]
        for function in _functions_in(member)
        for word in _words(function, seen, _DEEPEST)
    )
    return any(about in word for word in words for about in _ABOUT_DTYPES)


# --- its code -----------------------------------------------------------------------------------------------------
def _own_classes(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if class_location(base) is not None]


def _place_of_method(classes: list[type], name: str) -> Location | None:
    method = next((vars(cls)[name] for cls in classes if name in vars(cls)), None)
    code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
    return None if code is None else Location(os.path.abspath(code.co_filename), code.co_firstlineno)


def _functions_in(member: Any) -> list[FunctionType]:
    """The user's own function behind a method, a property, a tf.function or a decorator."""
    if isinstance(member, property):
        return [function for function in (member.fget, member.fset) if inspect.isfunction(function)]
    member = getattr(member, "__func__", member)
    member = getattr(member, "python_function", member) if hasattr(member, "get_concrete_function") else member
    wrapped = getattr(member, "__wrapped__", None)
    return [function for function in (member, wrapped) if inspect.isfunction(function)]


def _words(function: FunctionType, seen: set[CodeType], depth: int) -> Iterator[str]:
    code = function.__code__
    if code in seen or not depth:
        return
    seen.add(code)
    waiting = [code]
    while waiting:
        visited = waiting.pop()
        yield from visited.co_names
        for constant in visited.co_consts:
            if isinstance(constant, str):
                yield constant
            elif isinstance(constant, CodeType):
                waiting.append(constant)
        for name in visited.co_names:
            yield from _words_of_called(function.__globals__.get(name), seen, depth - 1)
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it is empty yet
            yield from _words_of_called(cell.cell_contents, seen, depth - 1)


def _words_of_called(called: Any, seen: set[CodeType], depth: int) -> Iterator[str]:
    for function in _functions_in(called):
        if is_own(function.__code__.co_filename):
            yield from _words(function, seen, depth)


def _holds_dtype(layer: KerasLayer) -> bool | None:
    try:
        return "dtype" in layer.get_config()
    except Exception:  # the user's own code, which may not be meant to be saved
        return None


# --- its values ---------------------------------------------------------------------------------------------------
def _attribute(layer: KerasLayer, name: str) -> Any:
    try:
        return getattr(layer, name, None)
    except Exception:  # a property of the user's own, which may raise whatever it likes
        return None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _name_of_function(value: object) -> str:
    return value if isinstance(value, str) else getattr(value, "__name__", "")


def _magnitudes(value: object) -> Iterator[tuple[float, float]]:
    """(largest, smallest that is not 0); nothing where there are no numbers, as before adapt()."""
    if value is None:
        return
    try:
        flat = numpy.abs(numpy.asarray(value, dtype="float64")).ravel()
    except (TypeError, ValueError, NotImplementedError):  # a symbolic tensor, or one of a graph
        return
    if flat.size:
        yield float(flat.max()), float(flat[flat > 0].min()) if (flat > 0).any() else 0.0
