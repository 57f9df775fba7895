"""Attributes that a program reads and writes, `getattr` and `setattr` with a literal name included."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.source import Read, SourceFacts, Write
from mpdoctor.facts.values import Attribute, Instance, Value, class_of, known, options


def reads(facts: SourceFacts, names: frozenset[str]) -> Iterator[Read]:
    for read in facts.reads:
        if read.name in names:
            yield read
    for call in facts.calls_of("builtins.getattr"):
        name = known(call.argument(1))
        if name in names and len(call.args) == 2:  # with a default the program is prepared
            yield Read(call.args[0], name, call.location, call.location, call.context, call.order)


def writes(facts: SourceFacts, names: frozenset[str]) -> Iterator[Write]:
    for write in facts.writes:
        if write.name in names:
            yield write
    for call in facts.calls_of("builtins.setattr"):
        name = known(call.argument(1))
        if name in names and len(call.args) == 3:
            yield Write(call.args[0], name, call.args[2], call.location, call.context, call.order)


def same_object(one: Value, other: Value) -> bool:
    """Whether two values may be the same object, as far as the program's text tells."""
    return any(_same(left, right) for left in options(one) for right in options(other))


def _same(one: Value, other: Value) -> bool:
    if one is other:
        return True
    if isinstance(one, Attribute) and isinstance(other, Attribute):
        return one.name == other.name and same_object(one.of, other.of)
    mine, theirs = class_of(one), class_of(other)
    return mine is not None and mine is theirs and (isinstance(one, Instance) or isinstance(other, Instance))
