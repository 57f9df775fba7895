"""The running call of a user's function that takes one step of an eager loop, so that it can be made again.

Only where its arguments are still what it was called with, and it takes one step a call: else it would be a step of
another batch."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from types import CodeType, FrameType, FunctionType
from typing import Callable, Iterator

import tensorflow as tf

from mpdoctor.examiner.process.user_code import is_own

REBINDING = ("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")


def call_of_running_step() -> Callable[[], object] | None:
    """The call of the user's innermost running function that made a tape, or of the innermost one where none did, to be
    made again; None where it cannot be."""
    frames = [frame for frame in _outwards(sys._getframe(1)) if is_own(frame.f_code.co_filename)]
    taking = next((frame for frame in frames if _made_tape(frame)), next(iter(frames), None))
    if taking is None or _is_in_loop(taking):
        return None
    if taking.f_code.co_flags & inspect.CO_GENERATOR or not taking.f_code.co_flags & inspect.CO_NEWLOCALS:
        return None  # it is no function, but a module
    function, arguments = _function_of(taking), _arguments_of(taking)
    if function is None or arguments is None:
        return None
    given, named = arguments
    return functools.partial(function, *given, **named)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _made_tape(frame: FrameType) -> bool:
    """Whether the frame holds a GradientTape that it was not given."""
    code = frame.f_code
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return any(isinstance(value, tf.GradientTape) and name not in given for name, value in frame.f_locals.items())


def _is_in_loop(frame: FrameType) -> bool:
    """Whether the line that is running now is inside a loop of this function's."""
    return any(start <= frame.f_lasti <= end for start, end in _loops(frame.f_code))


@functools.lru_cache(maxsize=None)
def _loops(code: CodeType) -> tuple[tuple[int, int], ...]:
    """(the first instruction, the last one) of each: a jump backwards.

    From Python 3.12 on, a handler of exceptions stands behind all other code and jumps back to what follows its `try`
    or `with`. That is no loop; inside of a `for`, the handler is a part of one."""
    jumps: list[tuple[int, int]] = []
    for_starts: set[int] = set()
    handler_start, ends_handler = -1, False
    for step in dis.get_instructions(code):
        if step.opname == "FOR_ITER":
            for_starts.add(step.offset)
        elif step.opname == "PUSH_EXC_INFO":
            handler_start = step.offset
        elif (step.opcode in dis.hasjabs or step.opcode in dis.hasjrel) and step.argval <= step.offset:
            if not ends_handler or handler_start < 0:
                jumps.append((step.argval, step.offset))
            elif step.argval in for_starts:
                jumps.append((handler_start, step.offset))
        if step.opname not in ("POP_TOP", "EXTENDED_ARG", "CACHE", "NOP"):
            ends_handler = step.opname == "POP_EXCEPT"
    return tuple(jumps)


def _arguments_of(frame: FrameType) -> tuple[list[object], dict[str, object]] | None:
    """The arguments as they were given; None where the function may have rebound them, or where one is an iterator,
    which has moved on."""
    code, values = frame.f_code, frame.f_locals
    positional = code.co_varnames[: code.co_argcount]
    rest = code.co_argcount + code.co_kwonlyargcount
    keywords = code.co_varnames[code.co_argcount : rest]
    starred = code.co_varnames[rest : rest + 1] if code.co_flags & inspect.CO_VARARGS else ()
    rest += len(starred)
    named = code.co_varnames[rest : rest + 1] if code.co_flags & inspect.CO_VARKEYWORDS else ()
    names = {*positional, *keywords, *starred, *named}
    if names & _bound_in(code) or not names <= values.keys():
        return None
    given = [*(values[name] for name in positional), *(value for name in starred for value in values[name])]
    by_name = {**{name: values[name] for name in keywords}, **(values[named[0]] if named else {})}
    if any(hasattr(type(value), "__next__") for value in (*given, *by_name.values())):
        return None
    return given, by_name


@functools.lru_cache(maxsize=None)
def _bound_in(code: CodeType) -> frozenset[str]:
    """Names of locals that instructions of this code bind or delete; those of a function inside it that says
    `nonlocal`, too."""
    names: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname.startswith(REBINDING):  # from Python 3.13 on one instruction may bind two
            names.update(step.argval if isinstance(step.argval, tuple) else (step.argval,))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _bound_in(inner) & set(inner.co_freevars)
    return frozenset(names)


def _function_of(frame: FrameType) -> Callable[..., object] | None:
    """The function of a frame, looked up by name where its caller found it: in the class of its first argument, in its
    module, in the functions around."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    places = [cls.__dict__ for cls in type(first).__mro__] if first is not None else []
    spaces = [*places, frame.f_globals, *(outer.f_locals for outer in _outwards(frame.f_back))]
    for space in spaces:
        member = space.get(code.co_name)
        function = inspect.unwrap(member, stop=_has(code)) if callable(member) else None
        function = getattr(function, "__func__", function)
        if isinstance(function, FunctionType) and function.__code__ is code:
            return function
    return None


def _has(code: CodeType) -> Callable[[object], bool]:
    return lambda function: getattr(function, "__code__", None) is code
