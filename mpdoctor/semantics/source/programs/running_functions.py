"""The functions in which a piece of code runs: its own, those that it stands in, and those that call it; and whether a
test runs it in which nothing is trained: what harms training alone is no defect there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.location import Location
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import walk

TRAINING = ("fit", "train_on_batch", "apply_gradients", "gradient")


def functions_around(facts: SourceFacts, context: Context) -> list[FunctionFacts | None]:
    """The functions that stand around code because they call it, outermost first."""
    if not context.callers:
        return []
    known = _functions_around(facts)
    if context not in known:
        places = contexts_of_calls(facts)
        contexts = [places.get(place) for place in context.callers]
        known[context] = [around.function if around is not None else None for around in contexts]
    return known[context]


def is_of_the_file(facts: SourceFacts, context: Context) -> bool:
    """Whether code runs when the file does, and in no method of a class."""
    if not context.reached or context.owner is not None:
        return False
    return all(function is None or function.owner is None for function in functions_around(facts, context))


def functions_of_call(facts: SourceFacts, call: Call) -> set[int]:
    """The ids of the functions in which a call is made."""
    around = (call.context.function, *functions_around(facts, call.context))
    return {id(function) for function in around if function is not None}


@lru_cache(maxsize=1)
def _functions_around(_facts: SourceFacts) -> dict[Context, list[FunctionFacts | None]]:
    """Cache of one program: rule after rule asks about the same contexts."""
    return {}


def method_around(facts: SourceFacts, context: Context) -> FunctionFacts | None:
    """The method of a class of Keras' kind (a layer, a loss, a metric …) in which code runs: the one that it stands in,
    or the nearest one that calls its function."""
    for function in (context.function, *reversed(functions_around(facts, context))):
        for around in surrounding(facts, function):
            if around.owner is not None and around.owner.kind is not None:
                return around
    return None


@lru_cache(maxsize=1)
def contexts_of_calls(facts: SourceFacts) -> dict[Location, Context]:
    """The context of the call at each place."""
    return {call.location: call.context for call in facts.calls}


def surrounding(facts: SourceFacts, function: FunctionFacts | None) -> Iterator[FunctionFacts]:
    """A function and those that it stands in, as far as it runs when they do: one that `add_loss` is given is called
    when somebody asks for the losses, and Keras 2 hands it the weights in float32 then."""
    while function is not None and id(function) not in _added_as_losses(facts):
        yield function
        function = function.enclosing


def runs_as_added_loss(facts: SourceFacts, context: Context) -> bool:
    """Whether code runs in a function that `add_loss` is given, wherever that is called, or in one that such a function
    calls."""
    added = _added_as_losses(facts)
    for function in (context.function, *functions_around(facts, context)) if added else ():
        inner = function
        while inner is not None:
            if id(inner) in added:
                return True
            inner = inner.enclosing
    return False


@lru_cache(maxsize=1)
def _added_as_losses(facts: SourceFacts) -> frozenset[int]:
    given = [part for call in facts.method_calls("add_loss") for value in call.given for part in walk(value)]
    return frozenset(id(part.of) for part in given if isinstance(part, Defined))


def is_in_test_without_training(facts: SourceFacts, context: Context) -> bool:
    """Whether a test runs this, which is walked by itself, and nothing in that test trains."""
    return is_in_test_without(facts, context, TRAINING)


def is_in_test_without(facts: SourceFacts, context: Context, methods: tuple[str, ...]) -> bool:
    """Whether a test runs this, which is walked by itself, and calls none of these methods."""
    if context.run not in _runs_of_tests(facts):
        return False
    return not any(other.context.run == context.run for other in facts.method_calls(*methods))


@lru_cache(maxsize=1)
def _runs_of_tests(facts: SourceFacts) -> frozenset[int]:
    """The numbers of the runs that a test starts, by the name that unittest and pytest know it by."""
    first = (call.context for call in facts.calls if call.context.run and not call.context.callers)
    return frozenset(context.run for context in first if context.function is not None and context.function.is_test)
