"""`with`: the context of its body, and what a user's context manager does before and after it."""

from __future__ import annotations

import ast

from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.values import Api, Attribute, Known, Value, is_api
from mpdoctor.source.existence_checks import is_guarding_context
from mpdoctor.source.interpreter.assignments import assign
from mpdoctor.source.interpreter.attributes import attribute_of
from mpdoctor.source.interpreter.calls.calls import call_value
from mpdoctor.source.interpreter.dispatch import evaluate, execute_block
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_with
from mpdoctor.source.interpreter.state.scopes import merged_names

MOST_VISITING = 2  # context managers inside one another each of whose yields is followed


def execute_with(state: State, node: ast.With | ast.AsyncWith) -> bool:
    outer = state.context
    goes_on = _execute_inside(state, node.items, node.body)
    state.context = outer
    return goes_on


def _execute_inside(state: State, items: list[ast.withitem], body: list[ast.stmt]) -> bool:
    if not items:
        return execute_block(state, body)
    item, rest = items[0], items[1:]
    outer, place = state.context, state.place(item.context_expr)
    order = state.next_order()
    visits = _Visits(state, item, rest, body)
    state.walk.entering[id(item.context_expr)] = visits.at_yield
    value = evaluate(state, item.context_expr)
    state.walk.entering.pop(id(item.context_expr), None)
    goes_on = visits.leave() if visits.ends else _execute_under(state, value, item, rest, body)
    state.context = outer
    record_with(state, value, place, outer, order)
    return goes_on or _is_guarding(value)


def _execute_under(
    state: State, value: Value, item: ast.withitem, rest: list[ast.withitem], body: list[ast.stmt]
) -> bool:
    """Execute the body under an object: of a class of the user's own the methods are called that Python calls. Whether
    the end of the body is reached."""
    entered = _call_method(state, value, "__enter__", (), item) or _given_through(value)
    outer = state.context
    guarded = outer.guarded or _is_guarding(value)
    state.context = outer.but(withs=(*outer.withs, value), guarded=guarded)
    if item.optional_vars is not None:
        assign(state, item.optional_vars, value if entered is None else entered)
    goes_on = _execute_inside(state, rest, body)
    state.context = outer
    nothing = Known(state.place(item.context_expr), None)
    _call_method(state, value, "__exit__", (nothing,) * 3, item)
    return goes_on


def _call_method(state: State, of: Value, name: str, args: tuple[Value, ...], item: ast.withitem) -> Value | None:
    own, place = class_of(of), state.place(item.context_expr)
    if own is None or own.find_method(name) is None:
        return None
    return call_value(state, attribute_of(state, of, name, place), args, place)


def _given_through(value: Value) -> Value | None:
    """`with contextlib.nullcontext(x) as y`"""
    is_made = isinstance(value, Call) and is_api(value.callee, "contextlib.nullcontext", "contextlib.closing")
    return value.argument(0, "enter_result") if is_made and isinstance(value, Call) else None


class _Visits:
    """The body of a `with` that runs where a generator yields which is the context manager: once for each `yield`, of
    which the program takes one."""

    def __init__(self, state: State, item: ast.withitem, rest: list[ast.withitem], body: list[ast.stmt]) -> None:
        self.state, self.item, self.rest, self.body = state, item, rest, body
        self.place = state.scope, state.frame, state.module
        self.context, self.callers = state.context, list(state.walk.call_stack)
        self.names: dict[str, Value] = {}
        self.ends: list[tuple[bool, dict[str, Value]]] = []

    def at_yield(self, given: Value) -> None:
        state, stack = self.state, self.state.walk.call_stack
        if self.ends and state.walk.visiting >= MOST_VISITING:
            return
        there, inside, callers = (state.scope, state.frame, state.module), state.context, list(stack)
        state.scope, state.frame, state.module = self.place
        stack[:] = self.callers
        self.names = self.names if self.ends else state.scope.names
        state.scope.names = dict(self.names)
        state.context = self.context.but(
            withs=inside.withs,
            branches=inside.branches,
            guarded=inside.guarded,
            swallowed=inside.swallowed,
            runtime_swallowed=inside.runtime_swallowed,
        )
        if self.item.optional_vars is not None:
            assign(state, self.item.optional_vars, given)
        state.walk.visiting += 1
        goes_on = _execute_inside(state, self.rest, self.body)
        state.walk.visiting -= 1
        self.ends.append((goes_on, state.scope.names))
        state.scope, state.frame, state.module = there
        state.context = inside
        stack[:] = callers

    def leave(self) -> bool:
        going_on = [names for goes_on, names in self.ends if goes_on]
        self.state.scope.names = merged_names(going_on) if going_on else self.names
        return bool(going_on)


def _is_guarding(value: Value) -> bool:
    callee = value.callee if isinstance(value, Call) else None
    return isinstance(callee, (Api, Attribute)) and is_guarding_context(callee.name)
