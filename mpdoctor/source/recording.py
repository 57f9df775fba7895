"""The events of a walk, in program order, and what surrounds the walker at the moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mpdoctor.facts.location import Location
from mpdoctor.program.source_facts import Read, Return, Use, With, Write
from mpdoctor.program.values import Api, Call, Context, Operation, Value

FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "horovod")  # roots of the names that rules ask for
MOST_EVENTS = 200_000  # of one file and what it reaches


class Enough(Exception):
    """The program is so large that the walk stops; what was seen so far is kept."""


@dataclass(eq=False)
class Events:
    """What one stretch of the walk recorded."""

    uses: list[Use] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    withs: list[With] = field(default_factory=list)
    returns: list[Return] = field(default_factory=list)


def joined_events(stretches: Iterable[Events]) -> Events:
    """Several stretches as one, in program order."""
    result = Events()
    for stretch in stretches:
        for name, events in vars(stretch).items():
            getattr(result, name).extend(events)
    for events in vars(result).values():
        events.sort(key=lambda event: event.order)
    return result


class Recorder:
    def __init__(self) -> None:
        self.context = Context()
        self.order = 0
        self.last_order = MOST_EVENTS
        self.runs = 0
        self.events = Events()
        self.frameworks_named = 0  # uses of TensorFlow's and Keras' names so far

    def next_order(self) -> int:
        self.order += 1
        return self.order

    def end_if_enough(self) -> None:
        """Asked before each statement."""
        if self.order > self.last_order:
            raise Enough

    def change_context(self, **changes: Any) -> Context:
        """Enter something; gives back the context to restore on leaving it."""
        before = self.context
        self.context = before.but(**changes)
        return before

    def record_use(self, api: Api, location: Location, is_import: bool = False, dotted: int = 0) -> None:
        self.events.uses.append(Use(api, location, self.context, self.next_order(), is_import, dotted))
        self.frameworks_named += api.root.startswith(FRAMEWORKS)

    def record_read(self, of: Value, name: str, location: Location, at: Location, is_called: bool) -> None:
        self.events.reads.append(Read(of, name, location, at, self.context, self.next_order(), is_called))

    def record_write(
        self, of: Value, name: str, value: Value, location: Location, index: Value | None, augmented: bool
    ) -> None:
        self.events.writes.append(Write(of, name, value, location, self.context, self.next_order(), index, augmented))

    def record_operation(
        self, location: Location, symbol: str, operands: tuple[Value, ...], augmented: bool = False
    ) -> Operation:
        operation = Operation(location, symbol, operands, self.context, self.next_order(), augmented)
        self.events.operations.append(operation)
        return operation

    def record_return(self, value: Value, location: Location) -> None:
        self.events.returns.append(Return(value, location, self.context, self.next_order()))

    def record_with(self, value: Value, location: Location, context: Context, order: int) -> None:
        self.events.withs.append(With(value, location, context, order, self.next_order()))
