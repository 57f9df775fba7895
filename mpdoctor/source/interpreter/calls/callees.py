"""The function that a call really runs, behind bound methods, tf.function, functools.partial and strategy.run."""

from __future__ import annotations

import ast
from typing import NamedTuple

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_class_of_layers
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Either, Value, is_api
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Closure, Keywords

# Calling what these return calls the function that they were given.
TRANSPARENT = (
    "tensorflow.function",
    "tensorflow.autograph.experimental.do_not_convert",
    "tensorflow.recompute_grad",
    "functools.lru_cache",
    "functools.cache",
    "functools.wraps",
    "keras.saving.register_keras_serializable",
    "keras.utils.register_keras_serializable",
    "contextlib.contextmanager",
    "abc.abstractmethod",
    "typing.overload",
    "typing.final",
    "jax.jit",
)
_RUNS = ("run", "experimental_run_v2", "call_for_each_replica")

Inlinable = tuple[Closure, tuple[Value, ...], Keywords]


class CallSite(NamedTuple):
    """A call as it is written, whatever function it calls.

    is_open
        True if `*rest` or `**rest` may hand over more arguments than are seen here.
    is_dropped
        True if the call is a statement of its own, whose result nobody keeps.
    node
        None where no call is written: a decorator's `@`, or a function that a library calls.
    """

    location: Location
    args: tuple[Value, ...]
    keywords: Keywords = ()
    is_open: bool = False
    is_dropped: bool = False
    node: ast.Call | None = None

    def call_of(self, callee: Value, state: State, result: Value | None = None, yielded: Value | None = None) -> Call:
        """The event of this call, the next one in the order of the program."""
        return Call(
            self.location,
            callee,
            self.args,
            self.keywords,
            state.context,
            state.next_order(),
            self.is_open,
            self.is_dropped,
            result,
            yielded,
        )


def really_called(callee: Value, site: CallSite) -> tuple[Value, CallSite]:
    """What a parameter's default and a partial of a library's function stand for, with all the arguments."""
    if isinstance(callee, Parameter) and _is_hook(callee.default):
        callee = callee.default or callee
    if isinstance(callee, Call) and is_api(callee.callee, "functools.partial") and _is_of_library(callee):
        given = [name for name, _ in site.keywords]
        keywords = (*site.keywords, *(pair for pair in callee.keywords if pair[0] not in given))
        args, is_open = (*callee.args[1:], *site.args), site.is_open or callee.open
        return callee.args[0], site._replace(args=args, keywords=keywords, is_open=is_open)
    return callee, site


def _is_hook(default: Value | None) -> bool:
    """Whether a parameter's default is a function, a layer or a class of layers. Where no caller is seen to give
    another one, a call of the parameter calls the default."""
    if isinstance(default, Call):
        is_partial = is_api(default.callee, "functools.partial")
        return _is_hook(default.args[0]) if is_partial and default.args else is_class_of_layers(default.callee)
    if isinstance(default, Defined) and isinstance(default.of, FunctionFacts):
        return True
    is_function = isinstance(default, Api) and not default.name.rpartition(".")[2][:1].isupper()
    return is_function or is_class_of_layers(default)


def inlinable_function(state: State, callee: Value, args: tuple[Value, ...], keywords: Keywords) -> Inlinable | None:
    """The function of the user's own that is really called, with its arguments: bound methods, what
    tf.function or functools.partial wrap, strategy.run(function, args=…)."""
    if isinstance(callee, Defined):
        bound = () if callee.bound is None else (callee.bound,)
        closure = closure_of(state, callee)
        return None if closure is None else (closure, (*bound, *args), keywords)
    if isinstance(callee, Attribute):
        return _run_in_replicas(state, callee, args, keywords)
    return _made_by_call(state, callee, args, keywords) if isinstance(callee, Call) else None


def closure_of(state: State, function: Defined) -> Closure | None:
    """The closure of a function of the user's; None for a class."""
    if isinstance(function.closure, Closure):
        return function.closure
    return state.closures.get(id(function.of))


def executed_function(state: State, callee: Value) -> tuple[Closure | None, int]:
    """The function of the user's own that a call executes, and how many of its arguments it has without the call's."""
    if isinstance(callee, Defined) and isinstance(callee.of, ClassFacts):
        initializer = callee.of.find_method("__init__")
        return state.closures.get(id(initializer)) if initializer else None, 1
    inlinable = inlinable_function(state, callee, (), ())
    return (None, 0) if inlinable is None or inlinable[2] else (inlinable[0], len(inlinable[1]))


def is_given_one_of_several(callee: Value, given: Either) -> bool:
    """Whether it is strategy.run(task.train_step, args=…), where the task is one of several, or tf.function(f if fast
    else g)."""
    if not all(isinstance(choice, Defined) for choice in given.options):
        return False
    if isinstance(callee, Attribute):
        return callee.name in _RUNS
    return isinstance(callee, Api) and (callee.name == "functools.partial" or callee.is_(*TRANSPARENT))


def _run_in_replicas(state: State, callee: Attribute, args: tuple[Value, ...], keywords: Keywords) -> Inlinable | None:
    """The function, or the object's `__call__`, that `strategy.run(function, args=…)` runs, with these arguments."""
    named = dict(keywords)
    run = args[0] if args else named.get("fn")
    if callee.name not in _RUNS or not isinstance(run, (Defined, Call)):
        return None
    given = named.get("args", args[1] if len(args) > 1 else None)
    if not isinstance(given, Collection) or given.open or "kwargs" in named:
        return None
    return inlinable_function(state, run, given.items, ())


def _made_by_call(state: State, callee: Call, args: tuple[Value, ...], keywords: Keywords) -> Inlinable | None:
    """An instance of the user's own class with a `__call__`, or a function that a library's function wraps."""
    made_by = callee.callee
    if isinstance(made_by, Defined) and isinstance(made_by.of, ClassFacts) and made_by.of.kind is None:
        method = _method_called(made_by.of)
        closure = None if method is None else state.closures.get(id(method))
        return None if closure is None else (closure, (callee, *args), keywords)
    maker = made_by.callee if isinstance(made_by, Call) else made_by
    wrapped = callee.argument(0)  # tf.function(func=…) too
    if wrapped is None or not isinstance(maker, Api):
        return None
    if maker.is_(*TRANSPARENT):
        return inlinable_function(state, wrapped, args, keywords)
    if maker.name == "functools.partial" and callee.args:
        return inlinable_function(state, callee.args[0], (*callee.args[1:], *args), (*callee.keywords, *keywords))
    return None


def _method_called(own: ClassFacts) -> FunctionFacts | None:
    """The method that runs where an instance is called: of a `keras.Operation` `call`, which gets the tensors as they
    are, since only layers cast them."""
    is_operation = any(base.is_("keras.Operation") for base in own.library_bases())
    return own.find_method("__call__") or (own.find_method("call") if is_operation else None)


def _is_of_library(partial: Call) -> bool:
    """Whether `functools.partial` was given a class, or a function or a method that is a library's. The user's own
    functions are inlined."""
    of = partial.args[0] if partial.args else None
    return isinstance(of, (Api, Attribute)) or (isinstance(of, Defined) and isinstance(of.of, ClassFacts))
