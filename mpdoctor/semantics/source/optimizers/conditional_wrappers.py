"""An optimizer that is wrapped only under `if cfg.fp16:` and used afterwards as if it were never wrapped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from mpdoctor.program.context import Branch
from mpdoctor.program.events import Call, Event
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import MISSING, Api, Attribute, Known, Value, known, options, walk
from mpdoctor.semantics.source.optimizers.wrappers import inner_argument, wrapped


def wrapped_on_condition(facts: SourceFacts, value: Value, event: Event) -> tuple[Value, ...]:
    """The optimizers inside, where a value is one of two: a bare optimizer, or the same in a wrapper that an `if` puts
    around it; and nothing else in the program asks what that `if` asks, so that whatever uses it uses both."""
    choices = options(value)
    wrappers = [choice for choice in choices if isinstance(choice, Call) and wrapped(facts, choice, event)]
    if len(wrappers) != 1 or len(choices) < 2 or event.context.guarded or wrappers[0].context.guarded:
        return ()
    inside = options(inner_argument(wrappers[0]))
    bare = [choice for choice in choices if choice is not wrappers[0]]
    if not all(any(choice is inner for inner in inside) for choice in bare):
        return ()
    around = {branch.statement for branch in event.context.branches}
    arms = [branch for branch in wrappers[0].context.branches if branch.statement not in around]
    return inside if arms and all(_is_asked_once(facts, arm) for arm in arms) else ()


def _is_asked_once(facts: SourceFacts, arm: Branch) -> bool:
    """Whether an arm may be taken, and no other `if` of the program is about the same things."""
    certain = known(arm.test)
    if certain is not MISSING and bool(certain) is not arm.taken:
        return False
    about = set(_subjects(arm.test))
    others = (asked for statement, asked in _asked_by_statement(facts).items() if statement != arm.statement)
    return bool(about) and all(about.isdisjoint(asked) for asked in others)


def _subjects(test: Value) -> Iterator[str]:
    """What a test is about, by name; a constant that a class or an object keeps is one value for all who ask."""
    for part in walk(test):
        if isinstance(part, Known):
            yield f"constant {id(part)}"
        if isinstance(part, (Attribute, Parameter)) or (isinstance(part, Api) and part.root != "builtins"):
            yield part.name


@lru_cache(maxsize=1)
def _asked_by_statement(facts: SourceFacts) -> dict[int, frozenset[str]]:
    """What each `if` of the program is about."""
    kinds: tuple[tuple[Event, ...], ...] = (facts.calls, facts.reads, facts.writes, facts.operations, facts.returns)
    contexts = {id(event.context): event.context for event in chain.from_iterable((*kinds, facts.uses))}
    branches = {id(branch): branch for context in contexts.values() for branch in context.branches}
    tests = {branch.statement: branch.test for branch in branches.values()}
    return {statement: frozenset(_subjects(test)) for statement, test in tests.items()}
