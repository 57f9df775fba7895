"""Attributes that a program reads and writes by name, and whether two values are one object."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mpdoctor.program.events import Call, Read, Write
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Instance
from mpdoctor.program.values import Attribute, Value, options


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


def scales_in_keras2(facts: SourceFacts, optimizer: Value) -> bool:
    """Whether the program scales with the same object, and it is of no class of its own: in Keras 2 that is a
    LossScaleOptimizer. False up to TensorFlow 2.8, where it may be the experimental one, which has other attributes."""
    is_old = facts.keras.package == "tf.keras" and facts.keras.release < (2, 9)
    if facts.keras.is_keras3 or is_old or any(class_of(option) is not None for option in options(optimizer)):
        return False
    scaling = facts.method_calls("get_scaled_loss", "get_unscaled_gradients")
    return any(call.receiver is not None and same_object(call.receiver, optimizer) for call in scaling)
