"""Names that `getattr(module, name)` may be asked for."""

from __future__ import annotations

import re

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Attribute, Either, Known, Value, is_api, known

DIMENSIONS = ("1", "2", "3")
_FILLED = {"%": re.compile("%[dsi]"), "format": re.compile(r"\{0?\}")}
_MOST_PARTS = 10  # of a text that are put together
Parts = tuple["str | None", ...]
"""The parts of a text, None for what is not known."""


def attribute_names(of: Value, name: Value) -> tuple[str, ...]:
    """The names of `getattr(of, name)`, of a name that is not known: of a parameter the default, of several texts each;
    of layers by their dimensions, `getattr(layers, f"Conv{n}D")`, those of one, two and three. () where none is
    known."""
    if isinstance(name, Either) and name.default is None:
        texts = [option.value for option in name.options if isinstance(option, Known) and isinstance(option.value, str)]
        return tuple(dict.fromkeys(texts)) if len(texts) == len(name.options) else ()
    before, *behind = texts_around_gaps(name)
    if not behind:
        return (before,)
    is_of_layers = isinstance(of, Api) and public_name(of.name) == "keras.layers"
    if not is_of_layers or len(behind) != 1 or not behind[0].startswith("D"):
        return ()
    return tuple(f"{before}{number}{behind[0]}" for number in DIMENSIONS)


def texts_around_gaps(value: Value) -> list[str]:
    """The known texts before, between and behind the parts of a text that are not known."""
    texts = [""]
    for part in _parts_of_text(value):
        if part is None:
            texts.append("")
        else:
            texts[-1] += part
    return texts


def _parts_of_text(value: Value, depth: int = 0) -> Parts:
    """The parts of a text that the program puts together; of a parameter those of its default."""
    if isinstance(value, Parameter) and value.default is not None:
        value = value.default
    text = known(value)
    if isinstance(text, str) or (type(text) is int and depth):
        return (str(text)[:200],)
    if depth > _MOST_PARTS:
        return (None,)
    if isinstance(value, Operation):
        if value.operator in ("f-string", "+"):
            return tuple(part for operand in value.operands for part in _parts_of_text(operand, depth + 1))
        if value.operator == "%" and len(value.operands) == 2:
            return _filled("%", *value.operands, depth)
    if isinstance(value, Call) and len(value.args) == 1 and not value.keywords:
        if is_api(value.callee, "builtins.str"):
            return _parts_of_text(value.args[0], depth + 1)
        if isinstance(value.callee, Attribute) and value.callee.name == "format":
            return _filled("format", value.callee.of, value.args[0], depth)
    return (None,)


def _filled(how: str, text: Value, given: Value, depth: int) -> Parts:
    """The parts of a text with one gap, `"Conv%dD" % n` or `"Conv{}D".format(n)`."""
    written = known(text)
    ends = _FILLED[how].split(written) if isinstance(written, str) else []
    if len(ends) != 2 or any(sign in end for end in ends for sign in "%{}"):
        return (None,)
    return (ends[0], *_parts_of_text(given, depth + 1), ends[1])
