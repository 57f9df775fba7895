"""Recording of events, each with the context that it happens in and its place in program order."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.program.context import Context
from mpdoctor.program.events import Operation, Read, Return, Use, With, Write
from mpdoctor.program.values import Api, Value
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.names import FRAMEWORKS


def record_use(state: State, api: Api, location: Location, is_import: bool = False, dotted: int = 0) -> None:
    state.events.uses.append(Use(api, location, state.context, state.next_order(), is_import, dotted))
    state.frameworks_named += api.root.startswith(FRAMEWORKS)


def record_read(state: State, of: Value, name: str, location: Location, at: Location, is_called: bool) -> None:
    state.events.reads.append(Read(of, name, location, at, state.context, state.next_order(), is_called))


def record_write(
    state: State, of: Value, name: str, value: Value, location: Location, index: Value | None, augmented: bool
) -> None:
    state.events.writes.append(Write(of, name, value, location, state.context, state.next_order(), index, augmented))


def record_operation(
    state: State, location: Location, symbol: str, operands: tuple[Value, ...], augmented: bool = False
) -> Operation:
    operation = Operation(location, symbol, operands, state.context, state.next_order(), augmented)
    state.events.operations.append(operation)
    return operation


def record_return(state: State, value: Value, location: Location) -> None:
    state.events.returns.append(Return(value, location, state.context, state.next_order()))


def record_with(state: State, value: Value, location: Location, context: Context, order: int) -> None:
    state.events.withs.append(With(value, location, context, order, state.next_order()))
