"""The events that running a file would cause: names used, calls, attributes read and written, operations, returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import chain
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from mpdoctor.facts.frozen import dataclass
from mpdoctor.program.events import Call, Operation, Read, Return, Use, With, Write

MOST_EVENTS = 200_000  # of one file and what it reaches


class Enough(Exception):
    """The program is so large that the interpreter stops; the events so far are kept."""


@dataclass(frozen=False, eq=False, repr=False)
class Events:
    """What one stretch of a program recorded."""

    uses: list[Use] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    withs: list[With] = field(default_factory=list)
    returns: list[Return] = field(default_factory=list)

    @property
    def stretches(self) -> tuple[list[Any], ...]:
        """The list of each kind of event, in the order of the fields."""
        return (self.uses, self.calls, self.reads, self.writes, self.operations, self.withs, self.returns)


class _Ordered(Protocol):
    @property
    def order(self) -> int: ...


Event = TypeVar("Event", bound=_Ordered)


def joined_events(stretches: Sequence[Events]) -> Events:
    """Several stretches as one, in program order."""
    return Events(
        _in_order(stretch.uses for stretch in stretches),
        _in_order(stretch.calls for stretch in stretches),
        _in_order(stretch.reads for stretch in stretches),
        _in_order(stretch.writes for stretch in stretches),
        _in_order(stretch.operations for stretch in stretches),
        _in_order(stretch.withs for stretch in stretches),
        _in_order(stretch.returns for stretch in stretches),
    )


def _in_order(stretches: Iterable[list[Event]]) -> list[Event]:
    return sorted(chain.from_iterable(stretches), key=attrgetter("order"))
