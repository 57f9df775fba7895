"""Inlining of calls: the body of a user's own function is executed with the arguments that it is called with."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Instance, Parameter
from mpdoctor.program.values import Api, Collection, Known, Value, options
from mpdoctor.source.interpreter.dispatch import evaluate, execute_block
from mpdoctor.source.interpreter.settings.command_line import defaults_of_command
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_return
from mpdoctor.source.interpreter.state.scopes import Closure, Frame, Keywords, Scope
from mpdoctor.source.joining import joined, tells_of_all, with_default
from mpdoctor.source.syntax_nodes import SETTING_UP

DEEPEST_CALL = 12  # functions inlined into one another
DEEPEST_PLAIN = 8  # the same of one that never names TensorFlow or Keras
DEEPEST_ALONE = 4  # the same from a function that nobody calls: of its parameters little is known
DEEPEST_ALONE_ELSEWHERE = 3  # the same of a function in another file than that one, which is walked there as well
DEEPEST_SETTING_UP_ELSEWHERE = 2  # the same of what sets up an object: layers hold layers, and these again
MOST_INLININGS = 64  # times that one function is inlined
MOST_INLININGS_ALONE = 10  # the same from functions that nobody calls: of what they hand on little is known
MOST_INLINED_STATEMENTS = 40_000  # statements executed in inlined functions, all together
MOST_PLAIN = 100  # of them in one function that never names TensorFlow or Keras: a reader of configurations, say


def inline_call(
    state: State,
    closure: Closure,
    args: tuple[Value, ...],
    keywords: Keywords,
    is_open: bool,
    location: Location,
    at_yield: Callable[[Value], None] | None = None,
    at_end: Callable[[dict[str, Value]], None] | None = None,
) -> Value | None:
    """Execute a function's body with these arguments. None where that gives no value: it is too deep,
    recursive, a generator, or called too often. `at_yield`: what runs where it yields, if it is a context manager;
    `at_end`: what is told its own names when it has ended."""
    if not closure.is_inlinable or _goes_too_far(state, closure):
        if closure.raises_where_missing:
            _note_raise_where_missing(state)
        return None
    walk = state.walk
    names = _bound_names(closure, args, keywords, is_open)
    context = state.context
    # The `try` of a decorator is about all functions that it may be given, and asks nothing about this one.
    guarded = _is_behind_guard(state, closure) or (walk.guarded if closure.is_wrapped else _is_guarded(state, closure))
    hidden = {"swallowed": None, "runtime_swallowed": None} if closure.is_wrapped else {}
    state.context = context.but(
        function=closure.facts,
        owner=closure.facts.owner_around,
        callers=(*context.callers, location),
        guarded=guarded,
        **hidden,
    )
    is_context = closure.is_generator and _is_decorated_by(closure.facts, "contextlib.contextmanager")
    frame = _execute_body(state, closure, names, at_yield if is_context else None)
    state.context = context.still_inside(state.context)
    _note_how_it_ended(state, closure, frame, location)
    if at_end is not None:
        at_end(frame.names)
    if closure.is_generator:
        return None if is_context else _value_of_generator(frame, context.loops, closure.facts.location)
    return _without_itself(joined(frame.returns), closure) if frame.returns else Known(location, None)


def _note_how_it_ended(state: State, closure: Closure, frame: Frame, location: Location) -> None:
    """Note what the calling function learns of the one that it called at this place: whether that raises where a part
    of a library is missing, and whether the calling function ends with it."""
    if frame.raises_where_missing:
        closure.raises_where_missing = True
        _note_raise_where_missing(state)
    ends_caller = frame.never_returns and not closure.is_generator and not _may_be_written_elsewhere(closure)
    state.frame.left_at = location if ends_caller else None


def _may_be_written_elsewhere(closure: Closure) -> bool:
    """Whether another function may run in its place: a class below may override a method, and who raises
    NotImplementedError waits for one."""
    names = (inner.id for inner in ast.walk(closure.node) if isinstance(inner, ast.Name))
    return closure.facts.owner is not None or "NotImplementedError" in names


def _note_raise_where_missing(state: State) -> None:
    """Note that the function just called raises where a part of a library is missing: what follows runs only where
    there is none missing."""
    if len(state.context.branches) == len(state.frame.entered.branches):  # whatever else the caller does
        state.frame.raises_where_missing = True
    state.context = state.context.but(guarded=True)


def _goes_too_far(state: State, closure: Closure) -> bool:
    """Whether it is too deep, calls itself, was inlined too often, or would tell nothing new."""
    walk, most = state.walk, MOST_INLININGS if state.context.reached else MOST_INLININGS_ALONE
    if _inlining_depth(state) >= _depth_limit(state, closure):
        walk.too_deep += not state.context.reached
        return True
    return (
        any(closure.is_same(other) for other in walk.call_stack)
        or walk.times_inlined[id(closure.facts)] >= most
        or (closure.is_plain and walk.statements_in[id(closure.facts)] > MOST_PLAIN)
        or walk.inlined_statements > MOST_INLINED_STATEMENTS
        or (bool(walk.call_stack) and walk.call_stack[-1].is_wrapper and _has_been_executed(state, closure))
    )


def _has_been_executed(state: State, closure: Closure) -> bool:
    """Whether what nobody calls has been executed: from a wrapper that nobody calls nothing is known of the
    arguments."""
    return not state.context.reached and id(closure.facts) in state.walk.executed


def _without_itself(value: Value, closure: Closure) -> Value:
    """The values that a function returns where it does not call itself; where it does, the result is made of these."""
    rest = [choice for choice in options(value) if not _is_call_of(choice, closure)]
    return joined(rest) if rest else value


def _is_call_of(value: Value, closure: Closure) -> bool:
    return isinstance(value, Call) and isinstance(value.callee, Defined) and value.callee.of is closure.facts


def _is_behind_guard(state: State, closure: Closure) -> bool:
    """Whether it is defined or chosen behind a guard, or its class is, wherever it is called."""
    chosen = state.walk.chosen_behind_guard
    return closure.is_guarded or id(closure.facts) in chosen or id(closure.facts.owner) in chosen


def _is_guarded(state: State, closure: Closure) -> bool:
    """Whether a guard stands around the call in hand. A guard decides nothing about a function that each of its arms
    calls."""
    names, outside = state.frame.in_each_arm
    return outside.guarded if closure.facts.name in names else state.context.guarded


def _inlining_depth(state: State) -> int:
    """How many functions are inlined into one another; in a function that nobody calls, those that are defined in
    others do not count."""
    stack = state.walk.call_stack
    if state.context.reached or len(stack) >= DEEPEST_PLAIN:
        return len(stack)
    return sum(1 for closure in stack if closure.facts.enclosing is None)


def _depth_limit(state: State, closure: Closure) -> int:
    if state.context.reached:
        return DEEPEST_PLAIN if closure.is_plain else DEEPEST_CALL
    stack = state.walk.call_stack
    if not stack or closure.module is stack[0].module:
        return DEEPEST_ALONE
    return DEEPEST_SETTING_UP_ELSEWHERE if closure.facts.name in SETTING_UP else DEEPEST_ALONE_ELSEWHERE


def _is_decorated_by(function: FunctionFacts, name: str) -> bool:
    """Whether this library name decorates it, called or not."""
    made = (decorator.callee if isinstance(decorator, Call) else decorator for decorator in function.decorators)
    return any(isinstance(decorator, Api) and decorator.is_(name) for decorator in made)


def inline_uncalled(state: State, closure: Closure, keywords: Keywords = ()) -> None:
    """Execute a function that nobody calls, or that a library will call: its parameters are `Parameter`s, but for
    `keywords`, which it has been given before."""
    context = state.context
    state.walk.executed_alone.add(id(closure.facts))
    guarded = _is_guarded(state, closure) or _is_behind_guard(state, closure)
    state.context = context.but(function=closure.facts, owner=closure.facts.owner_around, guarded=guarded)
    names = _bound_names(closure, _receiver(state, closure), keywords, None)
    for name, default in defaults_of_command(closure.facts).items():
        if name in names:
            names[name] = with_default(default, names[name])
    if _is_decorated_by(closure.facts, "hydra.main"):
        from mpdoctor.source.interpreter.settings.setting_files import settings_of_hydra  # few programs use it

        names |= settings_of_hydra(state, closure)
    _execute_body(state, closure, names)
    state.context = context


def _execute_body(
    state: State, closure: Closure, names: dict[str, Value], at_yield: Callable[[Value], None] | None = None
) -> Frame:
    outer = state.scope, state.frame, state.module
    walk, named, inlined = state.walk, state.frameworks_named, state.walk.inlined_statements
    is_new, too_deep = id(closure.facts) not in walk.executed, walk.too_deep
    walk.executed.add(id(closure.facts))
    walk.times_inlined[id(closure.facts)] += 1
    caller = state.frame if walk.call_stack or state.context.reached else None
    walk.call_stack.append(closure)
    state.scope, state.frame, state.module = (
        Scope(closure.scope, names=names),
        Frame(closure.facts, state.context, at_yield=at_yield, caller=caller),
        closure.module,
    )
    goes_on = _execute(state, closure.node.body)
    executed = state.frame
    executed.never_returns = not goes_on and not executed.returns and executed.ends_program
    executed.names = state.scope.names
    state.scope, state.frame, state.module = outer
    walk.call_stack.pop()
    if is_new and walk.too_deep > too_deep and walk.call_stack:
        walk.executed.discard(id(closure.facts))  # what it calls is followed where it is executed by itself
    walk.statements_in[id(closure.facts)] += walk.inlined_statements - inlined
    closure.is_plain = state.frameworks_named == named
    return executed


def _value_of_generator(frame: Frame, loops: int, location: Location) -> Value:
    """What a generator gives: a list, which is open where it yields in a loop. What its one `yield` gives in a loop
    stands for each element, as in a comprehension."""
    numbers = [number for number, (_, inside) in enumerate(frame.yields) if inside > loops]
    ending = len(frame.yields) - 1 - numbers[-1] if numbers else 0
    items = tuple(value for value, _ in frame.yields)
    is_uniform = len(numbers) == len(items) == 1 and tells_of_all(items[0])
    return Collection(location, "list", items, (), bool(numbers), ending, is_uniform)


def _execute(state: State, body: list[ast.stmt] | ast.expr) -> bool:
    """Execute the body of a `def`, or evaluate the expression of a `lambda` as its return value. Whether the end of the
    body is reached."""
    if isinstance(body, list):
        return execute_block(state, body)
    value = evaluate(state, body)
    state.frame.returns.append(value)
    record_return(state, value, state.place(body))
    return True


def _receiver(state: State, closure: Closure) -> tuple[Value, ...]:
    """`self` of a method, `cls` of a class method."""
    owner, facts = closure.facts.owner, closure.facts
    if owner is None or closure.is_static or not facts.parameters:
        return ()
    if closure.is_classmethod or facts.name == "__new__":
        return (Defined(owner.location, owner),)
    return (Instance(owner.location, state.walk.made_for.get(id(owner), owner.whole)),)


def _bound_names(
    closure: Closure, args: tuple[Value, ...], keywords: Keywords, is_open: bool | None
) -> dict[str, Value]:
    """Parameters by name. `is_open` None: nobody knows the arguments behind `args`."""
    arguments, given = closure.node.args, dict(keywords)
    positional = [*arguments.posonlyargs, *arguments.args]
    names: dict[str, Value] = {}
    for index, node in enumerate((*positional, *arguments.kwonlyargs)):
        name, default = node.arg, closure.defaults.get(node.arg)
        is_positional = index < len(positional)
        if is_positional and index < len(args):
            names[name] = args[index]
        elif name in given:
            names[name] = given.pop(name)
        elif is_open is False and default is not None:
            names[name] = default
        else:
            position = index if is_positional else -1
            names[name] = Parameter(closure.module.source.location(node), name, position, closure.facts, default)
    if arguments.vararg is not None:
        node = arguments.vararg
        place = closure.module.source.location(node)
        if is_open is None and closure.stands_for is not None:
            names[node.arg] = _taken_by_method(closure.facts, len(positional), place)
        elif is_open is None:
            names[node.arg] = Parameter(place, node.arg, -1, closure.facts)
        else:
            names[node.arg] = Collection(place, "tuple", args[len(positional) :], (), is_open)
    if arguments.kwarg is not None:
        node = arguments.kwarg
        place = closure.module.source.location(node)
        if is_open is None:
            names[node.arg] = Parameter(place, node.arg, -1, closure.facts)
        else:
            keys = tuple(Known(place, name) for name in given)
            names[node.arg] = Collection(place, "dict", tuple(given.values()), keys, is_open)
    return names


def _taken_by_method(method: FunctionFacts, first: int, place: Location) -> Collection:
    """What a method takes by position from this one on, in the `*args` of the function that stands in its place."""
    ending = next((index for index, name in enumerate(method.parameters) if name.startswith("*")), None)
    is_open = ending is not None and not method.parameters[ending].startswith("**")
    taken = list(enumerate(method.parameters[:ending]))[first:]
    items = [Parameter(place, name, index, method, method.defaults.get(name)) for index, name in taken]
    return Collection(place, "tuple", tuple(items), (), is_open)
