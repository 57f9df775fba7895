"""Loops: the body is executed once, for any element, or for each of a few known elements in turn."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mpdoctor.program.events import Call
from mpdoctor.program.values import Collection, Earlier, Value, certainly_known, is_api, known
from mpdoctor.source.interpreter.assignments import assign
from mpdoctor.source.interpreter.containers.elements import element_of, iterated
from mpdoctor.source.interpreter.control_flow.loop_rounds import is_range_with_steps, last_rounds, rounds_in_turn
from mpdoctor.source.interpreter.dispatch import evaluate, execute_block
from mpdoctor.source.interpreter.state.events import Events
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import merged_names
from mpdoctor.source.joining import joined, without_earlier
from mpdoctor.source.syntax_nodes import extends_list, nodes_in

HANDING_ON = ("builtins.zip", "builtins.reversed", "builtins.sorted", "tqdm.tqdm", "tqdm.auto.tqdm")


def execute_for(state: State, node: ast.For | ast.AsyncFor) -> bool:
    iterable = iterated(state, evaluate(state, node.iter))
    in_turn = rounds_in_turn(node, iterable, state.place(node.target))
    if in_turn:
        return _execute_for_each(state, node, in_turn)
    element = element_of(iterable, state.place(node.target))
    once = _goes_round_once(iterable)
    _execute_loop(state, node, lambda: assign(state, node.target, element), once or _is_never_empty(iterable), once)
    last = last_rounds(node, iterable)
    return not last or _execute_for_each(state, node, last)


def _goes_round_once(iterable: Value) -> bool:
    """Whether a loop over it has one round, so that it carries nothing on: `range(1)`, or a list of one thing."""
    if isinstance(iterable, Collection):
        return len(iterable.items) == 1 and not iterable.open and not iterable.uniform
    if not isinstance(iterable, Call) or iterable.open or not iterable.args:
        return False
    if is_api(iterable.callee, "builtins.range"):
        numbers = [number for number in map(certainly_known, iterable.args) if isinstance(number, int)]
        return len(numbers) == len(iterable.args) < 4 and numbers[2:] != [0] and len(range(*numbers)) == 1
    return is_api(iterable.callee, "builtins.enumerate") and _goes_round_once(iterable.args[0])


def _is_never_empty(iterable: Value) -> bool:
    """Whether a loop over it goes round at least once; what a loop or a comprehension fills with what it
    makes, as with layers, is taken to hold something."""
    if isinstance(iterable, Collection):
        is_whole = not iterable.open and not iterable.uniform
        return bool(iterable.items) and (is_whole or any(isinstance(item, Call) for item in iterable.items))
    if not isinstance(iterable, Call) or iterable.open or not iterable.args:
        return False
    if is_api(iterable.callee, "builtins.range"):
        numbers = [number for number in map(known, iterable.args) if isinstance(number, int)]
        return len(numbers) == len(iterable.args) and is_range_with_steps(numbers)
    if is_api(iterable.callee, "builtins.enumerate"):
        return _is_never_empty(iterable.args[0])
    return is_api(iterable.callee, *HANDING_ON) and all(map(_is_never_empty, iterable.args))


def _execute_for_each(state: State, node: ast.For | ast.AsyncFor, elements: tuple[Value, ...]) -> bool:
    for element in elements:
        assign(state, node.target, element)
        if not execute_block(state, node.body):
            return False
    return execute_block(state, node.orelse)


def execute_while(state: State, node: ast.While) -> bool:
    from mpdoctor.source.interpreter.control_flow.emptied_lists import execute_until_empty  # few programs have any

    goes_on = execute_until_empty(state, node)
    if goes_on is not None:
        return goes_on
    _execute_loop(state, node, lambda: evaluate(state, node.test), _is_true_at_first(state, node.test))
    return True


def _is_true_at_first(state: State, test: ast.expr) -> bool:
    """Whether the body is executed at least once: `while True`, and `while number < 3` behind `number = 0`."""
    if not isinstance(test, ast.Compare) or any(isinstance(inner, ast.Call) for inner in ast.walk(test)):
        return isinstance(test, ast.Constant) and bool(test.value)
    events, state.events = state.events, Events()  # they are recorded where the loop is executed
    answer = certainly_known(evaluate(state, test))
    state.events = events
    return bool(answer)


def _execute_loop(
    state: State,
    node: ast.For | ast.AsyncFor | ast.While,
    start: Callable[[], object],
    at_least_once: bool,
    at_most_once: bool = False,
) -> None:
    """Execute the body of a loop once. What it assigns is, at its start, the value from before or an unknown value."""
    before, outer = dict(state.scope.names), state.context
    assigned = _assigned_names(node)
    carried: dict[str, Earlier] = {}
    for name in assigned:
        old = state.scope.names.get(name)
        if old is not None and not at_most_once:
            carried[name] = Earlier(old.location, len(outer.branches))
            state.scope.names[name] = joined((old, carried[name]))
    state.context = state.context.but(loops=outer.loops + 1)
    start()
    state.frame.exits.append([])
    goes_on = execute_block(state, node.body)
    exits = state.frame.exits.pop()
    if goes_on:
        exits.append((state.scope.names, True))
    ends = [names for names, _ in exits]
    for name, earlier in carried.items():
        earlier.ends.extend(names[name] for names in ends if name in names)
        earlier.handed_on.extend(names[name] for names, begins_again in exits if begins_again and name in names)
    if not at_least_once or not ends:
        ends.append(before)
    state.scope.names, state.context = merged_names(ends), outer
    for name in assigned & state.scope.names.keys():
        state.scope.names[name] = without_earlier(state.scope.names[name])
    execute_block(state, node.orelse)


def leave_loop(state: State, node: ast.Break | ast.Continue) -> bool:
    state.frame.ends_program = False
    if state.frame.exits:
        state.frame.exits[-1].append((dict(state.scope.names), isinstance(node, ast.Continue)))
    return False


def _assigned_names(node: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    """Names that the loop's body may bind, remembered on the node."""
    names = getattr(node, "assigned", None)
    if names is None:
        inside = nodes_in(node.body)
        extended = {
            id(inner.target) for inner in inside if isinstance(inner, ast.AugAssign) and extends_list(inner)
        }  # changed in place, as by `extend`
        names = frozenset(
            inner.id
            for inner in inside
            if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load) and id(inner) not in extended
        )
        node.assigned = names  # type: ignore[union-attr]
    assert isinstance(names, frozenset)
    return names
