"""Dtypes of one program's tensors, each worked out once, and where they are used in a loop."""

from __future__ import annotations

from mpdoctor.facts.versions import Keras
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.tensor_dtypes import Returned, dtype_of
from mpdoctor.program.values import Earlier, Value


class ProgramDtypes:
    """As its Keras has them. What is remembered is so by id; the value is kept, so that no other one gets its id."""

    def __init__(self, keras: Keras, returned: Returned | None = None) -> None:
        self._keras = keras
        self._returned = returned
        self._dtypes: dict[int, tuple[Value, str | None]] = {}
        self._dtypes_at_first: dict[int, tuple[Value, str | None]] = {}
        self._rounds: dict[int, int] = {}

    def of(self, value: Value | None) -> str | None:
        """The dtype of a tensor, None where it is not certain. What was asked once is
        remembered: values hold one another in chains, and rules ask about each link."""
        if value is None:
            return None
        if id(value) not in self._dtypes:
            self._dtypes[id(value)] = value, dtype_of(value, self._keras, self._dtypes, returned=self._returned)
        return self._dtypes[id(value)][1]

    def at(self, value: Value | None, context: Context) -> str | None:
        """The dtype that a tensor has where it is used. In a loop that is what it has the first time round, unless an
        `if` of the loop's stands before."""
        found = self.of(value)
        if found is not None or value is None or not context.loops:
            return found
        if len(context.branches) > self._fewest_branches_of_rounds(value):
            return None
        if id(value) not in self._dtypes_at_first:
            first = dtype_of(value, self._keras, self._dtypes_at_first, first_round=True, returned=self._returned)
            self._dtypes_at_first[id(value)] = value, first
        return self._dtypes_at_first[id(value)][1]

    def _fewest_branches_of_rounds(self, value: Value) -> int:
        """Of the loops' variables that a tensor was made from, how many arms surround the one with the fewest; -1 where
        it was made from none. Remembered by id, of its parts as well: `_dtypes` keeps the value, and that its parts."""
        waiting = [value] if id(value) not in self._rounds else []
        while waiting:
            current = waiting[-1]
            unknown = [part for part in current.parts if id(part) not in self._rounds]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            found = [self._rounds[id(part)] for part in current.parts]
            own = [current.branches] if isinstance(current, Earlier) else []
            self._rounds[id(current)] = min((*own, *(branches for branches in found if branches >= 0)), default=-1)
        return self._rounds[id(value)]
