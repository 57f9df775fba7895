"""Which events of a program happen on the same path through its `if`s."""

from __future__ import annotations

from mpdoctor.program.context import Branch, Context
from mpdoctor.program.events import Operation
from mpdoctor.program.values import Unknown, Value
from mpdoctor.semantics.source.optimizers.attribute_access import same_object


def exclude_each_other(one: Context, other: Context) -> bool:
    """Whether two events stand in different arms of one `if`, or of two that ask the same."""
    return any(
        (branch.statement == other_branch.statement and branch.taken is not other_branch.taken)
        or _answer(branch, other_branch) is False
        for branch in one.branches
        for other_branch in other.branches
    )


def _answer(branch: Branch, other: Branch) -> bool | None:
    """Whether two ifs that ask the same got the same answer, None where they ask for different things: `if not mixed:`
    is the other arm of `if mixed:`."""
    (test, taken), (other_test, other_taken) = _without_not(branch), _without_not(other)
    return taken is other_taken if _asks_the_same(test, other_test) else None


def _without_not(branch: Branch) -> tuple[Value, bool]:
    test, taken = branch.test, branch.taken
    while isinstance(test, Operation) and test.operator == "not":
        test, taken = test.operands[0], not taken
    return test, taken


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
            branch.statement == other_branch.statement or _answer(branch, other_branch)
            for other_branch in other.branches
        )
        for branch in one.branches
    )
