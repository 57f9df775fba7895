"""Which values a program uses for more than to show them, and how one that it does not use is kept."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Collection, Value, known, options

NULLCONTEXT = "contextlib.nullcontext"
_READING_ANY = ("builtins.getattr", "builtins.vars", "dataclasses.asdict", "operator.attrgetter", "copy.copy")


def used_values(facts: SourceFacts, unread: frozenset[str] = frozenset()) -> set[int]:
    """The ids of the values that the program uses for more than printing or logging, or for keeping them in attributes
    with the names `unread`."""
    waiting = list(_mentioned(facts, unread))
    seen: set[int] = set()
    for value in waiting:
        for option in options(value):
            if id(option) not in seen:
                seen.add(id(option))
                waiting += option.parts
    return seen


def attributes_unread(facts: SourceFacts) -> frozenset[str]:
    """The names of attributes that methods of the program's own plain classes set and nothing reads; none where the
    program reads attributes whose names it does not write out."""
    written = {write.name for write in facts.writes if class_of(write.of) is not None}
    read = {read.name for read in facts.reads}
    calls = facts.calls_of(*_READING_ANY) if written - read else ()
    if "__dict__" in read or any(not isinstance(known(call.argument(1)), str) for call in calls):
        return frozenset()
    of_others = {name for own in facts.classes if any(own.library_bases()) for name in own.attributes}
    in_bodies = {
        name
        for own in facts.classes
        for name, value in own.attributes.items()
        if any(isinstance(option, Call) and option.context.function is None for option in options(value))
    }
    return frozenset(written - read - of_others - in_bodies)


def _mentioned(facts: SourceFacts, unread: frozenset[str]) -> Iterator[Value | None]:
    """The values that are called, passed, computed with, stored or returned, except in text that is only shown."""
    for call in facts.calls:
        if not _only_shows(call):
            yield from (call.receiver, *call.given)
        yield from (branch.test for branch in call.context.branches if not _asks_for_none(branch.test))
    for operation in facts.operations:
        if not _makes_text(operation) and not _asks_for_none(operation):
            yield from operation.operands
    for write in facts.writes:
        is_unread = write.name in unread and class_of(write.of) is not None and not _is_container(write.value)
        yield from () if is_unread else (write.value, write.index)
    # The result of a function whose calls were followed is seen again where it is used.
    yield from (returned.value for returned in facts.returns if not returned.context.callers)
    yield from (opened.value for opened in facts.withs if not is_call_of(opened.value, NULLCONTEXT))
    for own in facts.classes:
        yield from (value for name, value in own.attributes.items() if name not in unread or _is_container(value))


def _is_container(value: Value) -> bool:
    """Whether it is, or may be, a list or dict, which is kept to be looked through from anywhere."""
    return any(isinstance(option, Collection) for option in options(value))


def _asks_for_none(test: Value) -> bool:
    """Whether the test compares with None, as `policy is not None` does."""
    is_comparison = isinstance(test, Operation) and test.operator in ("is", "is not")
    return is_comparison and any(known(operand) is None for operand in test.parts)


def _makes_text(operation: Operation) -> bool:
    """Whether it is `f"… {policy.name}"`, `"… %s" % policy.name` or `"… " + policy.name`."""
    return operation.operator == "f-string" or (
        operation.operator in ("%", "+") and isinstance(known(operation.operands[0]), str)
    )


def _only_shows(call: Call) -> bool:
    """Whether it is `print(…)`, `logging.info(…)` or `"…".format(…)` of a policy's text or attributes. A nullcontext
    does nothing with its argument: code that binds it by `as` uses it afterwards."""
    if call.method == "format" and isinstance(known(call.receiver), str):
        return True
    name = call.callee.name if isinstance(call.callee, (Api, Attribute)) else ""
    return name in ("builtins.print", NULLCONTEXT) or name.startswith("logging.") or name in ("info", "debug")


def returned_to(facts: SourceFacts, made: Call) -> Location:
    """The outermost call of a function whose `return` value it is; where it is made, if it is none."""
    place, callers = made.location, made.context.callers
    returned = {
        event.context.callers for event in facts.returns if any(option is made for option in options(event.value))
    }
    while callers and (callers in returned or text_before(facts, place) == "return"):
        place, callers = callers[-1], callers[:-1]
    return place


def is_name_before(text: str, may_be_constant: bool) -> bool:
    """Whether the text ends with `name =`, `name: Policy =` or `(name :=`; where it may be a module's constant, no name
    like HALF."""
    name = text.removesuffix("=").removesuffix(":").rpartition("(" if text.endswith(":=") else "\n")[2]
    name = name.partition(":")[0].strip()
    return text.endswith("=") and name.isidentifier() and not (may_be_constant and name.isupper())


def text_before(facts: SourceFacts, place: Location) -> str:
    """The text on the line before an expression; "" where the file is not at hand."""
    lines = facts.lines_of(place.path)
    return lines[place.line - 1][: place.column - 1].strip() if place.line <= len(lines) else ""
