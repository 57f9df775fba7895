"""The events of one walk, in program order, and what surrounds the walker at the moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mpdoctor.facts.location import Location
from mpdoctor.facts.source import Read, Return, Use, With, Write
from mpdoctor.facts.values import Api, Call, Context, Known, Operation, Value

MOST_EVENTS = 200_000


class Enough(Exception):
    """The program is so large that the walk stops; what was seen so far is kept."""


class Recorder:
    def __init__(self) -> None:
        self.context = Context()
        self.order = 0
        self.runs = 0
        self.uses: list[Use] = []
        self.calls: list[Call] = []
        self.reads: list[Read] = []
        self.writes: list[Write] = []
        self.operations: list[Operation] = []
        self.withs: list[With] = []
        self.returns: list[Return] = []

    def next_order(self) -> int:
        self.order += 1
        if self.order > MOST_EVENTS:
            raise Enough
        return self.order

    def change_context(self, **changes: Any) -> Context:
        """Enter something; gives back the context to restore on leaving it."""
        before = self.context
        self.context = replace(before, **changes)
        return before

    def record_use(self, api: Api, location: Location, is_import: bool = False) -> None:
        self.uses.append(Use(api, location, self.context, self.next_order(), is_import))

    def record_read(self, of: Value, name: str, location: Location, at: Location, is_called: bool) -> None:
        self.reads.append(Read(of, name, location, at, self.context, self.next_order(), is_called))

    def record_write(
        self, of: Value, name: str, value: Value, location: Location, index: Value | None, augmented: bool
    ) -> None:
        self.writes.append(
            Write(of, name, value, location, self.context, self.next_order(), index, augmented)
        )

    def record_operation(
        self, location: Location, symbol: str, operands: tuple[Value, ...], augmented: bool = False
    ) -> Operation:
        operation = Operation(location, symbol, operands, self.context, self.next_order(), augmented)
        self.operations.append(operation)
        return operation

    def record_return(self, value: Value, location: Location) -> None:
        self.returns.append(Return(value, location, self.context, self.next_order()))

    def record_with(self, value: Value, location: Location, context: Context, order: int) -> None:
        self.withs.append(With(value, location, context, order, self.next_order()))


def nothing(location: Location) -> Known:
    return Known(location, None)
