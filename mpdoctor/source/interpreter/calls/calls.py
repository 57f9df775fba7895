"""Calls: what they give, and the user's own functions inlined with the arguments that they are given."""

from __future__ import annotations

import ast
from functools import cache

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.values import (
    Api,
    Attribute,
    Call,
    ClassFacts,
    Collection,
    Defined,
    Either,
    FunctionFacts,
    Parameter,
    Value,
    is_api,
    options,
)
from mpdoctor.source.interpreter.attributes import evaluate_attribute
from mpdoctor.source.interpreter.call_inlining import DEEPEST_CALL, inline_call, inline_uncalled
from mpdoctor.source.interpreter.calls.builtin_calls import (
    call_builtin,
    call_known_method,
    call_library,
    remember_base_arguments,
)
from mpdoctor.source.interpreter.calls.higher_order_calls import result_of_higher_order
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.expressions import evaluate_keywords, evaluate_positional
from mpdoctor.source.interpreter.settings.command_line import remember_flag
from mpdoctor.source.interpreter.settings.data_classes import factory_of_field, fields_of, member_by_value
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_use
from mpdoctor.source.interpreter.state.scopes import Closure, Keywords
from mpdoctor.source.joining import joined

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
_TRANSPARENT = frozenset(map(public_name, TRANSPARENT))
_MAY_HOLD_FUNCTIONS = (Defined, Call, Collection, Either)
_RUNS = ("run", "experimental_run_v2", "call_for_each_replica")

Inlinable = tuple[Closure, tuple[Value, ...], Keywords]


def evaluate_call(state: State, node: ast.Call, dropped: bool = False) -> Value:
    function = node.func
    if isinstance(function, ast.Attribute):
        callee = evaluate_attribute(state, function, is_called=True)
    else:
        callee = evaluate(state, function)
    is_spread = any(isinstance(argument, ast.Starred) for argument in node.args)
    called, bound = _called(state, callee) if is_spread else (None, 0)
    args, is_open = evaluate_positional(state, node, called, bound)
    keywords, more = evaluate_keywords(state, node.keywords)
    location = state.place(node)
    is_open = is_open or more
    if not isinstance(callee, Either):
        return _call(state, callee, args, keywords, is_open, location, dropped, node)
    return joined(_call(state, choice, args, keywords, is_open, location, dropped, node) for choice in callee.options)


def _called(state: State, callee: Value) -> tuple[Closure | None, int]:
    """The function of the user's own that a call executes, and how many of its arguments it has without the call's."""
    if isinstance(callee, Defined) and isinstance(callee.of, ClassFacts):
        initializer = callee.of.find_method("__init__")
        return state.closures.get(id(initializer)) if initializer else None, 1
    inlinable = _inlinable(state, callee, (), ())
    return (None, 0) if inlinable is None or inlinable[2] else (inlinable[0], len(inlinable[1]))


def _call(
    state: State,
    callee: Value,
    args: tuple[Value, ...],
    keywords: Keywords,
    is_open: bool,
    location: Location,
    dropped: bool,
    node: ast.Call | None,
) -> Value:
    callee, args, keywords, is_open = _really_called(callee, args, keywords, is_open)
    if _runs_one_of_several(callee, args):
        given = [(choice, *args[1:]) for choice in options(args[0])]
        return joined(_call(state, callee, one, keywords, is_open, location, dropped, node) for one in given)
    if isinstance(callee, Defined) and isinstance(callee.of, ClassFacts):
        return _instantiate(state, callee, callee.of, args, keywords, is_open, location, dropped)
    inlinable = _inlinable(state, callee, args, keywords)
    result: Value | None = None
    if inlinable is not None:
        result = _inline(state, callee, inlinable, keywords, is_open, location, node)
    elif isinstance(callee, Api):
        followed = _followed(state, callee, args, keywords, is_open, location)
        if followed is not None:
            return followed
    gives, yields = (None, result) if inlinable is not None and inlinable[0].is_generator else (result, None)
    order = state.next_order()
    call = Call(location, callee, args, keywords, state.context, order, is_open, dropped, gives, yields)
    state.events.calls.append(call)
    remember_flag(state, call)
    if inlinable is None:
        if isinstance(callee, Attribute) and node is not None:
            special = call_known_method(state, callee, call, node)
        else:
            special = result_of_higher_order(state, call, lambda of, given: call_value(state, of, given, location))
        if special is not None:
            return special
        _inline_handed_over(state, callee, call)
    return call if gives is None else gives


def _really_called(
    callee: Value, args: tuple[Value, ...], keywords: Keywords, is_open: bool
) -> tuple[Value, tuple[Value, ...], Keywords, bool]:
    """What a parameter's default and a partial of a library's function stand for, with all the arguments."""
    if isinstance(callee, Parameter) and _is_hook(callee.default):
        callee = callee.default or callee
    if isinstance(callee, Call) and is_api(callee.callee, "functools.partial") and _is_of_library(callee):
        given = [name for name, _ in keywords]
        keywords = (*keywords, *(pair for pair in callee.keywords if pair[0] not in given))
        args, is_open = (*callee.args[1:], *args), is_open or callee.open
        callee = callee.args[0]
    return callee, args, keywords, is_open


def _inline(
    state: State,
    callee: Value,
    inlinable: Inlinable,
    keywords: Keywords,
    is_open: bool,
    location: Location,
    node: ast.Call | None,
) -> Value | None:
    """What the user's own function returns, or yields where it is a generator."""
    at_yield = None
    if node is not None:
        remember_base_arguments(state, callee, keywords, node)
        at_yield = state.walk.entering.pop(id(node), None)
    return inline_call(state, *inlinable, is_open, location, at_yield)


def _followed(
    state: State, callee: Api, args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location
) -> Value | None:
    """What a function of Python or of a library gives, where that is known."""
    if callee.root == "builtins":
        return call_builtin(state, callee.name, args, keywords, is_open, location)
    followed = call_library(state, callee.name, args, keywords, is_open, location)
    if isinstance(followed, Api):
        record_use(state, followed, location, is_import=True)
    return followed


def call_value(state: State, callee: Value, args: tuple[Value, ...], location: Location) -> Value:
    """What a value gives that is called with these arguments by something else than a call of the program's own: by a
    decorator's `@`, or by a function that it was given to."""
    return joined(_call(state, choice, args, (), False, location, False, None) for choice in options(callee))


def _instantiate(
    state: State,
    callee: Defined,
    own: ClassFacts,
    args: tuple[Value, ...],
    keywords: Keywords,
    is_open: bool,
    location: Location,
    dropped: bool,
) -> Value:
    member = member_by_value(own, args)
    if member is not None:
        return member
    order = state.next_order()
    call = Call(location, callee, args, keywords, state.context, order, is_open, dropped)
    state.events.calls.append(call)
    if state.context.reached:
        state.walk.instantiated.add(id(own))
    initializer = own.find_method("__init__")
    closure = state.closures.get(id(initializer)) if initializer else None
    if closure is not None:
        inline_call(state, closure, (call, *args), keywords, is_open, location)
    else:
        _make_dataclass(state, own, call)
    _inline_handed_over(state, callee, call)
    return call


def _make_dataclass(state: State, own: ClassFacts, call: Call) -> None:
    """A dataclass or a named tuple: fields in the order of the class body, then what `__post_init__` does."""
    if not call.open and own.kind is None:
        fields = fields_of(own)
        given = dict(zip(fields, call.args, strict=False)) | {name: v for name, v in call.keywords if name in fields}
        for name, default in fields.items():
            factory = None if name in given else factory_of_field(default)
            if factory is not None:
                given[name] = call_value(state, factory, (), default.location)
        state.attributes[id(call)] = state.walk.side_effects.created(given)
    finishing = own.find_method("__post_init__")
    closure = state.closures.get(id(finishing)) if finishing else None
    if closure is not None:
        inline_call(state, closure, (call,), (), False, call.location)


def _is_hook(default: Value | None) -> bool:
    """Whether a parameter's default is a function: of one that nobody is seen to give another one, it is what is called
    where the parameter is."""
    if isinstance(default, Call):
        return is_api(default.callee, "functools.partial") and bool(default.args) and _is_hook(default.args[0])
    is_function = isinstance(default, Defined) and isinstance(default.of, FunctionFacts)
    return is_function or (isinstance(default, Api) and not default.name.rpartition(".")[2][:1].isupper())


def _inlinable(state: State, callee: Value, args: tuple[Value, ...], keywords: Keywords) -> Inlinable | None:
    """The function of the user's own that is really called, with its arguments: bound methods, what
    tf.function or functools.partial wrap, strategy.run(function, args=…)."""
    if isinstance(callee, Defined):
        bound = () if callee.bound is None else (callee.bound,)
        return _with_closure(state, callee.of, (*bound, *args), keywords)
    if isinstance(callee, Attribute):
        return _run_in_replicas(state, callee, args, keywords)
    return _made_by_call(state, callee, args, keywords) if isinstance(callee, Call) else None


def _runs_one_of_several(callee: Value, args: tuple[Value, ...]) -> bool:
    """strategy.run(task.train_step, args=…), where the task is one of several."""
    is_run = isinstance(callee, Attribute) and callee.name in _RUNS and bool(args)
    return is_run and len(options(args[0])) > 1 and all(isinstance(choice, Defined) for choice in options(args[0]))


def _run_in_replicas(state: State, callee: Attribute, args: tuple[Value, ...], keywords: Keywords) -> Inlinable | None:
    """strategy.run(function, args=…)"""
    if callee.name not in _RUNS or not args or not isinstance(args[0], Defined):
        return None
    named = dict(keywords)
    given = named.get("args", args[1] if len(args) > 1 else None)
    if not isinstance(given, Collection) or given.open or "kwargs" in named:
        return None
    return _inlinable(state, args[0], given.items, ())


def _made_by_call(state: State, callee: Call, args: tuple[Value, ...], keywords: Keywords) -> Inlinable | None:
    """An instance of the user's own class with a `__call__`, or a function that a library's function wraps."""
    made_by = callee.callee
    if isinstance(made_by, Defined) and isinstance(made_by.of, ClassFacts) and made_by.of.kind is None:
        return _with_closure(state, made_by.of.find_method("__call__"), (callee, *args), keywords)
    maker = made_by.callee if isinstance(made_by, Call) else made_by
    if not callee.args or not isinstance(maker, Api):
        return None
    if maker.is_(*TRANSPARENT):
        return _inlinable(state, callee.args[0], args, keywords)
    if maker.name == "functools.partial":
        return _inlinable(state, callee.args[0], (*callee.args[1:], *args), (*callee.keywords, *keywords))
    return None


def _with_closure(
    state: State, function: FunctionFacts | ClassFacts | None, args: tuple[Value, ...], keywords: Keywords
) -> Inlinable | None:
    closure = state.closures.get(id(function)) if isinstance(function, FunctionFacts) else None
    return None if closure is None else (closure, args, keywords)


def _inline_handed_over(state: State, callee: Value, call: Call) -> None:
    """Functions that a library is handed (`compile(loss=f)`, `dataset.map(f)`) are called by it some
    time."""
    if len(state.walk.call_stack) >= DEEPEST_CALL:
        return
    may_hold_functions = [argument for argument in call.given if isinstance(argument, _MAY_HOLD_FUNCTIONS)]
    if not may_hold_functions or (isinstance(callee, Api) and _hands_on(callee.name)):
        return
    for argument in may_hold_functions:
        for choice in options(argument):
            for value in choice.items if isinstance(choice, Collection) else (choice,):
                _inline_one_handed_over(state, value)


@cache
def _hands_on(name: str) -> bool:
    """Whether a library's function gives back what it is given, or something that calls it when it is called."""
    return public_name(name) in _TRANSPARENT or name == "functools.partial"


def _inline_one_handed_over(state: State, value: Value) -> None:
    """A function, or one of which functools.partial has given some keywords."""
    keywords: Keywords = ()
    if isinstance(value, Call) and is_api(value.callee, "functools.partial") and len(value.args) == 1:
        keywords = value.keywords
        value = value.args[0]
    closure = state.closures.get(id(value.of)) if isinstance(value, Defined) else None
    if closure is None or id(closure) in state.walk.executed:
        return
    inline_uncalled(state, closure, keywords)


def _is_of_library(partial: Call) -> bool:
    """Whether `functools.partial` was given a class, or a function or a method that is a library's. The user's own
    functions are inlined."""
    of = partial.args[0] if partial.args else None
    return isinstance(of, (Api, Attribute)) or (isinstance(of, Defined) and isinstance(of.of, ClassFacts))
