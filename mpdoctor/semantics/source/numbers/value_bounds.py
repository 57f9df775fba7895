"""Bounds for the number and the size of a value's elements, where the source shows them."""

from __future__ import annotations

import math
from typing import NamedTuple

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Api, Collection, Item, Known, Value, is_api, known, options
from mpdoctor.semantics.source.numbers.constants import MADE

DEEPEST = 8
SIX_SIGMA = 6.0  # of a standard normal distribution: one number in 500 million is larger
# What fills a shape, and the magnitude of its numbers where it is given nothing but that.
FILLED = {"zeros": 0.0, "ones": 1.0, "normal": SIX_SIGMA, "truncated_normal": 2.0, "uniform": 1.0}
NEW_AXIS = ("numpy.newaxis", "tensorflow.newaxis")
ELSEWHERE = ("mean", "stddev", "minval", "maxval", "loc", "scale", "low", "high")


class Bound(NamedTuple):
    """At most `numbers` elements, each of a magnitude of at most `largest`."""

    numbers: int
    largest: float


def bound_of(value: Value | None, depth: int = 0) -> Bound | None:
    """The bound that the source shows for a value; None where it shows none."""
    if depth > DEEPEST:
        return None
    bounds = [_bound_of_value(option, depth) for option in options(value)]
    known = [bound for bound in bounds if bound is not None]
    return _joined(known) if known and len(known) == len(bounds) else None


def _bound_of_value(value: Value, depth: int) -> Bound | None:
    if isinstance(value, Known):
        is_number = isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
        return Bound(1, abs(float(value.value))) if is_number else None
    if isinstance(value, Collection):
        items = [bound_of(item, depth + 1) for item in value.items]
        held = [item for item in items if item is not None]
        if not held or len(held) < len(items):
            return None
        return Bound(sum(item.numbers for item in held), max(item.largest for item in held))
    if isinstance(value, Operation):
        return _bound_of_operation(value, depth)
    if isinstance(value, Item):
        return bound_of(value.of, depth + 1) if _adds_an_axis(value) else None
    if isinstance(value, Call) and isinstance(value.callee, Api):
        if is_api(value.callee, *MADE):
            return bound_of(value.argument(0), depth + 1)
        return _bound_of_filled(value, public_name(value.callee.name).rpartition(".")[2])
    return None


def _adds_an_axis(value: Item) -> bool:
    """Whether it is `a[:, None]` or `a[np.newaxis, :]`, whose numbers are those of `a`."""
    places = value.index.items if isinstance(value.index, Collection) else ()
    return any((isinstance(place, Known) and place.value is None) or is_api(place, *NEW_AXIS) for place in places)


def _bound_of_operation(value: Operation, depth: int) -> Bound | None:
    left, *rest = (bound_of(operand, depth + 1) for operand in value.operands)
    right = rest[0] if rest else Bound(1, 0.0)
    if left is None or right is None or value.operator not in ("+", "-", "*"):
        return None
    largest = left.largest * right.largest if value.operator == "*" else left.largest + right.largest
    return Bound(left.numbers * right.numbers, largest)  # by broadcasting, at most


def _bound_of_filled(call: Call, name: str) -> Bound | None:
    if (
        name not in FILLED
        or any(call.keyword(keyword) is not None for keyword in ELSEWHERE)
        or call.argument(2) is not None
    ):
        return None
    shape = call.argument(0, "shape")
    sizes = [known(size) for size in shape.items] if isinstance(shape, Collection) else [known(shape)]
    if not all(isinstance(size, int) for size in sizes):
        return None
    return Bound(math.prod(size for size in sizes if isinstance(size, int)), FILLED[name])


def _joined(bounds: list[Bound]) -> Bound:
    return Bound(max(bound.numbers for bound in bounds), max(bound.largest for bound in bounds))
