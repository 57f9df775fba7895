"""Which values are masks: zeros and ones by which others are multiplied, to leave places out."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.memoize import asked_once
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Attribute, Item, Value, known, options
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.numbers.constants import CASTS, numbers_from_value
from mpdoctor.semantics.wording import text_at

RESHAPING = (
    "expand_dims",
    "reshape",
    "identity",
    "squeeze",
    "repeat",
    "tile",
    "broadcast_to",
    "transpose",
    "stop_gradient",
)
MASKS = ("sequence_mask", "logical_not", "logical_and", "logical_or", "band_part", "tril", "triu", "tri")
COMBINING = ("maximum", "minimum", "multiply")
ONES = ("ones", "ones_like")
NAMES = ("mask", "padding")


def is_mask(facts: SourceFacts, value: Value, depth: int = 0) -> bool:
    """Whether it certainly holds zeros and ones."""
    return (
        depth < 12 and bool(options(value)) and all(_is_one_mask(facts, option, depth + 1) for option in options(value))
    )


@asked_once
def _is_one_mask(facts: SourceFacts, value: Value, depth: int) -> bool:
    """Whether it is computed like a mask: 1 - x, x - 1, a condition that was cast, or another shape of such a value."""
    if isinstance(value, Operation) and len(value.operands) == 2:
        left, right = value.operands
        if value.operator == "-":
            return _is_one(left) or _is_one(right)
        return value.operator == "*" and is_mask(facts, left, depth) and is_mask(facts, right, depth)
    if isinstance(value, Item):
        return is_mask(facts, value.of, depth)
    if isinstance(value, Call) and isinstance(value.callee, Api):
        return _gives_mask(facts, value, value.callee, depth)
    return False


def _gives_mask(facts: SourceFacts, call: Call, function: Api, depth: int) -> bool:
    name = public_name(function.name).rpartition(".")[2]
    if name in MASKS:
        return True
    first = call.argument(0, "x") or call.keyword("input") or call.keyword("tensor")
    if first is None:
        return False
    if function.is_(*CASTS):
        return facts.dtype_of(first) == "bool" or is_mask(facts, first, depth)
    both = call.arguments(slice(2))
    if name == "subtract" and len(both) == 2:
        return any(map(_is_one, both))
    if name in COMBINING and len(both) == 2:
        return all(is_mask(facts, side, depth) for side in both)
    return name in RESHAPING and is_mask(facts, first, depth)


def _is_one(value: Value) -> bool:
    if isinstance(value, Call) and function_named(value) in ONES:
        return True
    return known(value) in (1, 1.0) or numbers_from_value(value) == (1.0,)


def is_named_mask(facts: SourceFacts, event: Operation | Call, value: Value) -> bool:
    """Whether the program calls it a mask: `mask * -1e9`, with mask a parameter or a part of the inputs."""
    if isinstance(value, Call) and isinstance(value.callee, Api) and value.callee.is_(*CASTS):
        return any(is_named_mask(facts, event, option) for option in options(value.argument(0, "x")))
    if isinstance(value, Parameter) or (isinstance(value, Attribute) and not isinstance(value.of, Api)):
        return any(name in value.name.lower() for name in NAMES)
    return isinstance(value, Item) and "mask" in text_at(facts, event.location).lower()
