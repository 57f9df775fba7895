"""Joining of values where paths of the program meet: one value that may be each of several."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_class_of_layers
from mpdoctor.program.user_definitions import Defined, Parameter
from mpdoctor.program.values import (
    Api,
    Collection,
    Earlier,
    Either,
    Item,
    Known,
    Others,
    Unknown,
    Value,
    is_api,
    known,
    options,
)

MOST_OPTIONS = 8
_EQUAL = (Known, Api, Unknown)  # of which two may tell the same
_MADE = (Call, Operation)  # values that an expression makes
_GIVING_NUMBERS = ("builtins.len", "builtins.int", "builtins.float", "builtins.round")
_ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**")
DEEPEST = 6  # of arguments in arguments
MOST_PARTS = 200  # of a comprehension's element that are looked at


def without_earlier(value: Value) -> Value:
    """A value behind the loop: what it was before the loop is among what the body made of it."""
    rest = [choice for choice in options(value) if not isinstance(choice, Earlier)]
    return joined(rest) if rest else value


def without_none(value: Value) -> Value:
    """The value without None: a program reads an attribute, so the value must be one of the others."""
    rest = [choice for choice in options(value) if not (isinstance(choice, Known) and choice.value is None)]
    return joined(rest) if rest and isinstance(value, Either) else value


def callables_of(value: Either) -> Value:
    """The value without what raises where it is called: None, numbers, and parameters that are a number by default."""
    rest = [choice for choice in value.options if not _is_none_or_number(choice)]
    return joined(rest) if 0 < len(rest) < len(value.options) else value


def _is_none_or_number(value: Value) -> bool:
    if isinstance(value, Parameter):  # which is given a function, perhaps, where it is None by default
        return type(known(value.default)) in (bool, int, float)
    return isinstance(value, Known) and (value.value is None or type(value.value) in (bool, int, float))


def joined(values: Iterable[Value | None]) -> Value:
    """One value that may be any of these. Equal constants and names count once."""
    values = tuple(values)
    if values and values[0] is not None and values.count(values[0]) == len(values):  # the same one: they compare so
        return values[0]
    distinct = _distinct(values)
    if not distinct:
        return Unknown()
    first, *others = distinct
    if len(others) >= MOST_OPTIONS:
        kept = distinct[: MOST_OPTIONS - 1]
        return Either(first.location, (*kept, Others() if _are_like_these(values, kept) else Unknown()))
    return Either(first.location, tuple(distinct)) if others else first


def joined_arms(values: list[Value]) -> Value:
    """One value where arms of the program meet. A parameter that is None by default, and the number or the class of
    layers that stands in its place then, are a parameter with this as its default: `if epsilon is None: epsilon =
    1e-7`."""
    if len(values) == 2 and any(type(value) is Parameter for value in values):
        instead, parameter = values if isinstance(values[1], Parameter) else reversed(values)
        is_optional = isinstance(parameter, Parameter) and type(parameter.default) is Known
        if is_optional and _may_be_default(instead):
            assert isinstance(parameter, Parameter)
            if known(parameter.default) is None:
                return dataclasses.replace(parameter, default=instead)
    return joined(values)


def _may_be_default(value: Value) -> bool:
    is_number = isinstance(value, Known) and type(value.value) in (int, float)
    return is_number or is_class_of_layers(value)


def with_default(default: Value, otherwise: Value) -> Value:
    """What an option of the command line gives: its default, or what nobody knows."""
    value = joined((default, otherwise))
    if not isinstance(value, Either) or not isinstance(default, Known):
        return value
    return Either(value.location, value.options, default)


def _distinct(values: Iterable[Value | None]) -> list[Value]:
    """The distinct values among these, at most the first `MOST_OPTIONS`."""
    distinct: list[Value] = []
    for value in values:
        if value is None:
            continue
        for choice in value.options if isinstance(value, Either) else (value,):
            if not distinct or not _is_among(choice, distinct):
                distinct.append(choice)
        if len(distinct) > MOST_OPTIONS:
            break
    return distinct


def _is_among(value: Value, distinct: list[Value]) -> bool:
    if value in distinct:  # the same one: they compare so
        return True
    kind = type(value)
    if kind not in _EQUAL:
        return False
    for other in distinct:  # noqa: SIM110 - asked so often that a generator shows
        if type(other) is kind and _is_equal(value, other):
            return True
    return False


def _is_equal(value: Value, other: Value) -> bool:
    """Whether two values of one class are equal; the class is one of `_EQUAL`."""
    if isinstance(value, Known) and isinstance(other, Known):
        return type(value.value) is type(other.value) and bool(value.value == other.value)
    if isinstance(value, Api) and isinstance(other, Api):
        return value.spelled == other.spelled
    return True


def tells_of_all(element: Value) -> bool:
    """Whether one value stands for all elements of a comprehension. Not where something in it depends on a condition,
    or on known values that differ (`dtype=dtype for name, dtype in …`). Numbers, tensors and names may differ; what the
    command line says is the same for all."""
    waiting, seen = [element], {element}
    for value in waiting:
        if isinstance(value, Either) and value.default is None and not _may_differ(value):
            return False
        is_text = isinstance(value, Operation) and value.operator == "f-string"
        for part in () if is_text or isinstance(value, Either) or _is_a_number(value) else value.parts:
            if part not in seen:
                seen.add(part)
                waiting.append(part)
        if len(waiting) > MOST_PARTS:
            return False
    return True


def _may_differ(value: Either) -> bool:
    """Whether elements may differ in these and one tells of all the same: numbers, or what is computed."""
    return all(map(_is_a_number, value.options)) or all(map(_is_computed, value.options))


def _is_computed(value: Value) -> bool:
    """Whether it is what an operator, a layer or a library's function gives, or a part of that: no layer, and no other
    object that a class makes."""
    while isinstance(value, Item):
        value = value.of
    if not isinstance(value, Call):
        return isinstance(value, Operation)
    callee = value.callee
    return isinstance(callee, Call) or (isinstance(callee, Api) and callee.name.rpartition(".")[2][:1].islower())


def _is_a_number(value: Value) -> bool:
    """Whether it is a number that is known, or one that Python computes: `len(sizes)`, `len(sizes) + 2`."""
    if isinstance(value, Operation) and value.operator in _ARITHMETIC:
        return all(map(_is_a_number, value.operands))
    if isinstance(value, Call):
        return is_api(value.callee, *_GIVING_NUMBERS)
    return isinstance(known(value), (int, float))


def _are_like_these(values: Iterable[Value | None], kept: list[Value]) -> bool:
    """Whether each further one of several values is made as one of these is: by one expression, of one class and with
    the same arguments but for numbers and names. Their dtypes are the same."""
    made = [value for value in kept if type(value) in _MADE]
    for value in values if made else (None,):
        for choice in value.options if isinstance(value, Either) else (value,):
            if choice in kept or type(choice) is Others:
                continue
            if choice is None or type(choice) not in _MADE:
                return False
            if not any(one.location == choice.location and _is_like(one, choice) for one in made):
                return False
    return True


def _is_like(one: Value, other: Value, depth: int = 0) -> bool:
    """Whether two values are made alike, so that tensors made of them have the same dtype."""
    if one is other or isinstance(one, Others) or isinstance(other, Others):
        return True
    if type(one) is not type(other) or depth > DEEPEST:
        return False
    if isinstance(one, Known) and isinstance(other, Known):
        return _is_like_constant(one, other)
    if isinstance(one, Api) and isinstance(other, Api):
        return one.spelled == other.spelled
    if isinstance(one, Defined) and isinstance(other, Defined):
        return one.of is other.of
    if isinstance(one, Collection) and isinstance(other, Collection):
        return one.kind == other.kind and one.open == other.open and _are_like(one.items, other.items, depth)
    if isinstance(one, Call) and isinstance(other, Call) and one.location == other.location:
        return _is_like(one.callee, other.callee, depth + 1) and _is_given_alike(one, other, depth)
    if isinstance(one, Operation) and isinstance(other, Operation) and one.location == other.location:
        return one.operator == other.operator and _are_like(one.operands, other.operands, depth)
    return False


def _is_like_constant(one: Known, other: Known) -> bool:
    """Whether two constants are alike: all numbers are, and texts, which may name a dtype, where they are equal."""
    is_text = isinstance(one.value, str) or isinstance(other.value, str)
    return not is_text or bool(one.value == other.value)


def _is_given_alike(one: Call, other: Call, depth: int) -> bool:
    """Whether nothing that they are given lets the dtypes of their results differ."""
    if isinstance(one.callee, Call):
        return True  # what layers that are made alike give
    if one.open != other.open or len(one.args) != len(other.args):
        return False
    keywords = [dict(call.keywords) for call in (one, other)]
    if list(keywords[0]) != list(keywords[1]):
        return False
    if _is_told_dtype(one, keywords[0]) and _is_like(keywords[0]["dtype"], keywords[1]["dtype"], depth + 1):
        return True
    given = (*zip(one.args, other.args, strict=True), *zip(keywords[0].values(), keywords[1].values(), strict=True))
    names = (*[""] * len(one.args), *keywords[0])
    of_layer = isinstance(one.callee, Api) and one.callee.name.startswith("keras.layers.")
    return all(
        name == "name"
        or (of_layer and name != "dtype" and not _may_decide(some) and not _may_decide(another))
        or _is_like(some, another, depth + 1)
        for name, (some, another) in zip(names, given, strict=True)
    )


def _is_told_dtype(call: Call, keywords: dict[str, Value]) -> bool:
    """Whether it is a function of TensorFlow that gives what it is told to, whatever else it is given:
    `tf.range(count, dtype=tf.float32)`."""
    return isinstance(call.callee, Api) and call.callee.root == "tensorflow" and isinstance(keywords.get("dtype"), Api)


def _may_decide(argument: Value) -> bool:
    """Whether an argument of a layer, other than its dtype, may decide the dtype of what it gives: a layer inside."""
    return any(isinstance(option, (Call, Collection, Defined)) for option in options(argument))


def _are_like(some: tuple[Value, ...], others: tuple[Value, ...], depth: int) -> bool:
    return len(some) == len(others) and all(
        _is_like(one, other, depth + 1) for one, other in zip(some, others, strict=True)
    )
