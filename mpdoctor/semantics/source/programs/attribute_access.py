"""Attributes that a program reads and writes by name, and whether two values are one object."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mpdoctor.program.events import Call, Read, Write
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined, Instance
from mpdoctor.program.values import Api, Attribute, Value, options

_PACKAGES = ("keras.", "tensorflow.", "tf_keras.", "abc.", "builtins.")


def reads(facts: SourceFacts, names: Collection[str]) -> Iterator[Read]:
    return (read for read in facts.reads if read.name in names)


def writes(facts: SourceFacts, names: Collection[str]) -> Iterator[Write]:
    return (write for write in facts.writes if write.name in names)


def receivers(facts: SourceFacts, call: Call) -> tuple[Value, ...]:
    """Everything that a method may be called on at this place: a call of a method of one of several things is one event
    for each of them."""
    return tuple(
        option
        for other in facts.method_calls(call.method)
        if other.location == call.location and other.context.callers == call.context.callers
        for option in options(other.receiver)
    )


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


def takes_assignments_itself(own: ClassFacts, name: str) -> bool:
    """Whether a class of the user's, or a base that is not known, may define what assigning this attribute does."""
    return any(
        not ancestor.body_names.isdisjoint((name, "__setattr__")) or not all(map(_is_known, ancestor.bases))
        for ancestor in own.lineage()
    )


def _is_known(base: Value) -> bool:
    """Whether a base is a class of Keras or of Python, or the user's own."""
    return all(
        isinstance(option, Defined) or (isinstance(option, Api) and option.name.startswith(_PACKAGES))
        for option in options(base)
    )
