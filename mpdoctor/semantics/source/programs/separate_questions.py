"""Whether two `if`s of a program ask about independent things, so that both arms may be taken in one run."""

from __future__ import annotations

from mpdoctor.program.context import Branch, Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Instance, Parameter
from mpdoctor.program.values import (
    MISSING,
    Api,
    Attribute,
    Either,
    Item,
    Known,
    Value,
    certainly_known,
    is_api,
    known,
    options,
    walk,
)
from mpdoctor.semantics.source.programs.branches import exclude_each_other

Subjects = frozenset[tuple[str, ...]]
# Functions of one value whose answer is about that value alone.
OF_ONE_VALUE = ("bool", "int", "float", "str", "len")
MOST_PARTS, MOST_NAMES = 100, 10  # of a test that somebody reads


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
    """The subjects of the tests of these arms, without arms that both events share; None where a subject is not known,
    or where a test certainly has the other answer."""
    asked_about: Subjects = frozenset()
    for branch in branches:
        if branch.statement in shared:
            continue
        certain, asked = certainly_known(branch.test), subjects(branch.test)
        if asked is None or (certain is not MISSING and bool(certain) is not branch.taken):
            return None
        asked_about |= asked
    return asked_about


def subjects(test: Value) -> Subjects | None:
    """What a test is about: ("args", "fp16"), ("cfg", "loss_scale"). None where it may be about anything."""
    subjects, waiting, seen = set[tuple[str, ...]](), [test], {id(test)}
    for value in waiting:
        inside = _inside(value)
        place = _place(value) if inside is None else None
        if (inside is None and place is None) or len(waiting) > MOST_PARTS:
            return None
        subjects |= set() if place is None else {place}
        for part in inside or ():
            if id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)
    return frozenset(subjects)


def _inside(value: Value) -> tuple[Value, ...] | None:
    """The parts that a value is about; None for one that is a subject itself."""
    if isinstance(value, Known):
        return ()
    if isinstance(value, (Operation, Either)):
        return value.parts
    is_about_one = isinstance(value, Call) and isinstance(value.callee, Api) and value.method in OF_ONE_VALUE
    return value.given if isinstance(value, Call) and is_about_one else None


def _place(value: Value) -> tuple[str, ...] | None:
    """The names that lead to a value: of a parameter, of an attribute, of an entry that `[…]` or `.get(…)` gives."""
    names: list[str] = []
    for _ in range(MOST_NAMES):
        step = _step(value)
        if step is None:
            return None
        name, inner = step
        names.insert(0, name)
        if inner is None:
            return tuple(names)
        value = inner
    return None


def _step(value: Value) -> tuple[str, Value | None] | None:
    """The last of these names, and the value that it is a name of; None where that is not known."""
    named: object = None
    inner: Value | None = None
    if isinstance(value, (Parameter, Api)):
        return value.name, None
    if isinstance(value, Instance):
        return "self", None
    if isinstance(value, Call) and value.method != "get":
        name = _name_of_answer(value)
        return None if name is None else (name, None)
    if isinstance(value, Attribute):
        named, inner = value.name, value.of
    elif isinstance(value, Item):
        named, inner = known(value.index), value.of
    elif isinstance(value, Call):
        named, inner = known(value.argument(0)), value.receiver
    choices = options(inner)
    return (str(named), choices[0]) if len(choices) == 1 and isinstance(named, (str, int)) else None


def _name_of_answer(call: Call) -> str | None:
    """A name for an environment variable, and for the arguments of the command line. What another call finds out, such
    as how many devices there are, may hang together with anything."""
    if is_api(call.callee, "os.getenv"):
        name = known(call.argument(0))
        return name if isinstance(name, str) else None
    is_parser = any(is_api(part, "argparse.ArgumentParser") for part in walk(call.receiver))
    return "arguments" if call.method in ("parse_args", "parse_known_args") and is_parser else None


def _overlap(some: Subjects, others: Subjects) -> bool:
    """Whether one is part of another, or has the same last name: `args.fp16` may be what `self.fp16` holds."""
    return any(
        one[-1] == other[-1] or one[: len(other)] == other or other[: len(one)] == one
        for one in some
        for other in others
    )
