"""Constant folding of texts: what their methods and `%` give, where all that they are given is written out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from mpdoctor.facts.location import Location
from mpdoctor.program.values import MISSING, Collection, Known, Value

LONGEST = 10_000  # characters of a text, or bits of a number, that is still worth knowing
_LONGEST_CHANGED = 100
_OF_TEXTS = ("lower", "upper", "strip", "format", "replace", "removeprefix", "removesuffix", "startswith", "endswith")
_TAKING_APART = ("split", "rsplit", "partition", "rpartition")
_PLAIN_SIGNS = re.compile(r"(?:[^%]|%[sd%])*")
_PLAIN_FIELDS = re.compile(r"(?:[^{}]|\{\w*\})*")


def text_filled(text: Known, given: Value) -> Value | None:
    """The result of `"mixed_float%d" % 16`."""
    parts = given.items if isinstance(given, Collection) and given.kind == "tuple" and not given.open else (given,)
    plain = tuple(part.value for part in parts if isinstance(part, Known) and _is_short(part.value))
    if len(plain) < len(parts) or not _is_short(text.value) or not _PLAIN_SIGNS.fullmatch(text.value):
        return None
    try:
        return Known(text.location, text.value % plain)
    except (TypeError, ValueError):
        return None


def value_from_method(
    of: Known, name: str, arguments: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...], location: Location
) -> Value | None:
    """What a method of a text gives: a text, or a list of its parts; None where it is not certain."""
    if name == "join" and len(arguments) == 1 and isinstance(of.value, str):
        return _joined(of.value, arguments[0], location)
    if name in _TAKING_APART and not keywords and isinstance(of.value, str) and _is_short(of.value):
        return _taken_apart(of.value, name, arguments, location)
    constant = _constant_from_method(of.value, name, arguments, keywords)
    return None if constant is MISSING else Known(location, constant)


def _joined(between: str, held: Value, location: Location) -> Value | None:
    """The result of `"_".join(["mixed", "float16"])`."""
    if not isinstance(held, Collection) or held.open or held.uniform or held.kind not in ("list", "tuple"):
        return None
    texts = [item.value for item in held.items if isinstance(item, Known) and isinstance(item.value, str)]
    if len(texts) < len(held.items) or not all(map(_is_short, (between, *texts))):
        return None
    made = between.join(texts)
    return Known(location, made) if len(made) <= LONGEST else None


def _taken_apart(text: str, name: str, arguments: tuple[Value, ...], location: Location) -> Value | None:
    """The result of `"mixed_float16".split("_")`."""
    given = [argument.value for argument in arguments if isinstance(argument, Known)]
    if len(given) < len(arguments):
        return None
    try:
        parts = getattr(text, name)(*given)
    except (TypeError, ValueError):
        return None
    kind = "list" if isinstance(parts, list) else "tuple"
    return Collection(location, kind, tuple(Known(location, part) for part in parts))


def _is_short(constant: Any) -> bool:
    """Whether a text or number is small enough to be computed with."""
    return isinstance(constant, (str, int, float)) and size_of(constant) <= _LONGEST_CHANGED


def _constant_from_method(
    of: Any, name: str, arguments: tuple[Value, ...], keywords: Iterable[tuple[str, Value]]
) -> Any:
    """ "Adam".lower(), "model-{}.keras".format(3), name.startswith("mixed"), of constants; MISSING where it is not
    certain."""
    given = dict(keywords)
    is_known = all(isinstance(value, Known) for value in (*arguments, *given.values()))
    if not isinstance(of, str) or len(of) > _LONGEST_CHANGED or name not in _OF_TEXTS or not is_known:
        return MISSING
    plain = [value.value for value in arguments if isinstance(value, Known)]
    named = {key: value.value for key, value in given.items() if isinstance(value, Known)}
    if any(
        not isinstance(argument, (str, int)) or size_of(argument) > _LONGEST_CHANGED
        for argument in (*plain, *named.values())
    ):
        return MISSING
    if name == "format" and not _PLAIN_FIELDS.fullmatch(of):
        return MISSING  # widths and attributes
    try:
        made = getattr(of, name)(*plain, **named)
    except (TypeError, ValueError, LookupError):
        return MISSING
    return made if isinstance(made, bool) or (isinstance(made, str) and len(made) <= LONGEST) else MISSING


def size_of(value: Any) -> int:
    if isinstance(value, int):
        return value.bit_length()
    return len(value) if isinstance(value, (str, bytes)) else 0
