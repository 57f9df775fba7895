"""The functions in which a piece of code runs: its own, those that it stands in, and those that call it; and those that
run in another thread."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.location import Location
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Value, known, walk

# Calls that have a function run in another thread: the position and name of the argument that is the function.
_STARTING = {
    "threading.Thread": (1, "target"),
    "threading.Timer": (1, "function"),
    "asyncio.to_thread": (0, "func"),
    "_thread.start_new_thread": (0, "function"),
}
# Pools of threads: the position of the argument `initializer`, a function that each thread runs first.
_POOLS_OF_THREADS = {
    "concurrent.futures.ThreadPoolExecutor": 2,
    "concurrent.futures.thread.ThreadPoolExecutor": 2,
    "multiprocessing.pool.ThreadPool": 1,
    "multiprocessing.dummy.Pool": 1,
}
_OF_POOLS = {"submit": "fn", "map": "fn"} | dict.fromkeys(
    ("apply", "apply_async", "map_async", "imap", "imap_unordered", "starmap", "starmap_async"), "func"
)


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


# --- other threads --------------------------------------------------------------------------------------------------
def functions_in_threads(facts: SourceFacts) -> Iterator[tuple[Call, FunctionFacts]]:
    """Each call that certainly has a function of the program's run in another thread, and that function; but for pools
    with an initializer, which runs before it in each thread."""
    for call, value in _given_to_threads(facts):
        function = value.argument(0) if isinstance(value, Call) and is_call_of(value, "functools.partial") else value
        if isinstance(function, Defined) and isinstance(function.of, FunctionFacts):
            yield call, function.of
    for call in facts.method_calls("start"):
        own = class_of(call.receiver) if call.receiver is not None else None
        run = own.find_method("run") if own is not None else None
        if run is not None and own is not None and any(base.is_("threading.Thread") for base in own.library_bases()):
            yield call, run


def _given_to_threads(facts: SourceFacts) -> Iterator[tuple[Call, Value | None]]:
    """Each call that is given something to call in another thread, and that."""
    for api, (position, name) in _STARTING.items():
        yield from ((call, call.argument(position, name)) for call in facts.calls_of(api))
    for call in facts.method_calls(*_OF_POOLS):
        if _is_pool_without_initializer(call.receiver):
            yield call, call.argument(0, _OF_POOLS[call.method])
    for call in facts.method_calls("run_in_executor"):
        executor = call.argument(0, "executor")
        if known(executor) is None or _is_pool_without_initializer(executor):
            yield call, call.argument(1, "func")


def _is_pool_without_initializer(value: Value | None) -> bool:
    if not isinstance(value, Call) or not isinstance(value.callee, Api) or value.open:
        return False
    positions = [position for api, position in _POOLS_OF_THREADS.items() if value.callee.is_(api)]
    return bool(positions) and value.argument(positions[0], "initializer") is None
