"""Which `if`s of a program ask about different things, so that the arm of each may be taken with that of the other."""

from __future__ import annotations

from mpdoctor.program.context import Branch, Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Instance, Parameter
from mpdoctor.program.values import MISSING, Api, Attribute, Either, Item, Known, Value, is_api, known, options, walk
from mpdoctor.semantics.source.programs.branches import exclude_each_other

Subjects = frozenset[tuple[str, ...]]
# Functions of one value whose answer is about that value alone.
OF_ONE_VALUE = ("bool", "int", "float", "str", "len")


def may_happen_together(facts: SourceFacts, one: Context, other: Context) -> bool:
    """Whether two events stand in the arms of different `if`s, and nothing in the program connects what these ask."""
    shared = {branch.statement for branch in one.branches} & {branch.statement for branch in other.branches}
    if one.run != other.run or exclude_each_other(one, other):
        return False
    mine, theirs = (_subjects_of(context.branches, shared) for context in (one, other))
    if not mine or not theirs or _overlap(mine, theirs):
        return False
    tests = [operation for operation in facts.operations if operation.operator in ("and", "or")]
    asked_together = (subjects(test) or frozenset() for test in (*tests, *(branch.test for branch in one.branches)))
    return not any(_overlap(asked, mine) and _overlap(asked, theirs) for asked in asked_together)


def _subjects_of(branches: tuple[Branch, ...], shared: set[int]) -> Subjects | None:
    """What the tests of these arms are about, without those that both events share; None where one is not known, or is
    certainly answered otherwise."""
    found: Subjects = frozenset()
    for branch in branches:
        if branch.statement in shared:
            continue
        certain, asked = known(branch.test), subjects(branch.test)
        if asked is None or (certain is not MISSING and bool(certain) is not branch.taken):
            return None
        found |= asked
    return found


def subjects(test: Value) -> Subjects | None:
    """What a test is about: ("args", "fp16"), ("cfg", "loss_scale"). None where it may be about anything."""
    if isinstance(test, Known):
        return frozenset()
    if isinstance(test, (Operation, Either)):
        return _subjects_of_all(test.parts)
    if isinstance(test, Call) and isinstance(test.callee, Api) and test.method in OF_ONE_VALUE:
        return _subjects_of_all(test.given)
    place = _place(test)
    return None if place is None else frozenset((place,))


def _subjects_of_all(values: tuple[Value, ...]) -> Subjects | None:
    found = [subjects(value) for value in values]
    return None if None in found else frozenset().union(*(asked for asked in found if asked))


def _place(value: Value) -> tuple[str, ...] | None:
    """The names that lead to a value: of a parameter, of an attribute, of an entry that `[…]` or `.get(…)` gives."""
    if isinstance(value, Parameter):
        return (value.name,)
    if isinstance(value, Instance):
        return ("self",)
    if isinstance(value, Attribute):
        return _below(value.of, value.name)
    if isinstance(value, Item):
        return _below(value.of, known(value.index))
    if isinstance(value, Call):
        return _place_of_answer(value)
    return (value.name,) if isinstance(value, Api) else None


def _place_of_answer(call: Call) -> tuple[str, ...] | None:
    """The same for what a call gives: an entry, an environment variable, the arguments of the command line. What
    another call finds out, such as how many devices there are, may hang together with anything."""
    if call.method == "get":
        return _below(call.receiver, known(call.argument(0)))
    if is_api(call.callee, "os.getenv"):
        return ("os.environ", str(known(call.argument(0))))
    is_parser = any(is_api(part, "argparse.ArgumentParser") for part in walk(call.receiver))
    return ("arguments",) if call.method in ("parse_args", "parse_known_args") and is_parser else None


def _below(value: Value | None, name: object) -> tuple[str, ...] | None:
    choices = options(value)
    place = _place(choices[0]) if len(choices) == 1 else None
    return None if place is None or not isinstance(name, (str, int)) else (*place, str(name))


def _overlap(some: Subjects, others: Subjects) -> bool:
    """Whether one is part of another, or has the same last name: `args.fp16` may be what `self.fp16` holds."""
    return any(
        one[-1] == other[-1] or one[: len(other)] == other or other[: len(one)] == one
        for one in some
        for other in others
    )
