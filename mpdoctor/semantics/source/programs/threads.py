"""The functions that a program has run in another thread."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Value, known

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
