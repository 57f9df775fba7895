"""Dtypes of one program's tensors, each worked out once, and where they are used in a loop."""

from __future__ import annotations

from collections.abc import Mapping

from mpdoctor.facts.versions import Keras
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import Returned
from mpdoctor.program.dtypes.tensor_dtypes import dtype_of
from mpdoctor.program.values import Earlier, Value


class ProgramDtypes:
    """Dtypes of one program's tensors under its Keras. Values compare by identity, so each has a cache entry of its
    own."""

    def __init__(self, keras: Keras, returned: Returned, hands_on_dtypes: bool) -> None:
        self._keras, self._returned, self._hands_on_dtypes = keras, returned, hands_on_dtypes
        self._dtypes: dict[Value, str | None] = {}
        self._dtypes_at_first: dict[Value, str | None] = {}
        self._rounds: dict[Value, int] = {}

    def of(self, value: Value | None) -> str | None:
        """The dtype of a tensor, None where it is not certain. What was asked once is
        remembered: values hold one another in chains, and rules ask about each link."""
        if value is None:
            return None
        if value not in self._dtypes:
            self._dtypes[value] = self._dtype_of(value, self._dtypes)
        return self._dtypes[value]

    def at(self, value: Value | None, context: Context) -> str | None:
        """The dtype that a tensor has where it is used. In a loop that is what it has the first time round, unless an
        `if` of the loop's stands before."""
        dtype = self.of(value)
        if dtype is not None or value is None or not context.loops:
            return dtype
        if len(context.branches) > self._fewest_branches_of_rounds(value):
            return None
        if value not in self._dtypes_at_first:
            self._dtypes_at_first[value] = self._dtype_of(value, self._dtypes_at_first, first_round=True)
        return self._dtypes_at_first[value]

    def _dtype_of(self, value: Value, remembered: Mapping[Value, str | None], first_round: bool = False) -> str | None:
        return dtype_of(value, self._keras, remembered, first_round, self._returned, self._hands_on_dtypes)

    def _fewest_branches_of_rounds(self, value: Value) -> int:
        """The smallest number of arms around any of the loop variables that a tensor was computed from; -1 where it was
        computed from none. The results for its parts are cached as well."""
        waiting = [value] if value not in self._rounds else []
        while waiting:
            current = waiting[-1]
            parts = current.parts
            unknown = [part for part in parts if part not in self._rounds]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            branches = {self._rounds[part] for part in parts} - {-1}
            if isinstance(current, Earlier):
                branches.add(current.branches)
            self._rounds[current] = min(branches) if branches else -1
        return self._rounds[value]
