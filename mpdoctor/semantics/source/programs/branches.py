"""Which events of a program happen on the same path through its `if`s."""

from __future__ import annotations

from mpdoctor.program.values import Context, Unknown, Value
from mpdoctor.semantics.source.optimizers.attribute_access import same_object


def exclude_each_other(one: Context, other: Context) -> bool:
    """Whether two events stand in different arms of one `if`, or of two that ask the same."""
    return any(
        mine.taken is not theirs.taken
        and (mine.statement == theirs.statement or _asks_the_same(mine.test, theirs.test))
        for mine in one.branches
        for theirs in other.branches
    )


def _asks_the_same(one: Value, other: Value) -> bool:
    return not isinstance(one, Unknown) and same_object(one, other)


def happen_together(one: Context, other: Context) -> bool:
    """Whether there is a path for certain on which both happen: neither, or only one of them, depends on a condition
    that the other does not depend on."""
    if (one.run != other.run and 0 not in (one.run, other.run)) or exclude_each_other(one, other):
        return False
    return _depends_on_no_more(one, other) or _depends_on_no_more(other, one)


def _depends_on_no_more(one: Context, other: Context) -> bool:
    return all(
        any(
            branch.statement == theirs.statement
            or (branch.taken is theirs.taken and _asks_the_same(branch.test, theirs.test))
            for theirs in other.branches
        )
        for branch in one.branches
    )
