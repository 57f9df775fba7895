"""Loops: the body is executed once, for any element, or for each of a few known elements in turn."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mpdoctor.program.events import Call
from mpdoctor.program.values import Collection, Earlier, Known, Value, certainly_known, is_api, known
from mpdoctor.source.interpreter.assignments import assign
from mpdoctor.source.interpreter.containers import element_of, elements_in_turn, iterated
from mpdoctor.source.interpreter.dispatch import evaluate, execute_block
from mpdoctor.source.interpreter.state.events import Events
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import merged_names
from mpdoctor.source.joining import joined, without_earlier
from mpdoctor.source.syntax_nodes import nodes_in

HANDING_ON = ("builtins.zip", "builtins.reversed", "builtins.sorted", "tqdm.tqdm", "tqdm.auto.tqdm")
MOST_CALLED_IN_TURN = 6  # elements that a loop goes through one by one
MOST_SET_IN_TURN = 40  # of a loop that does nothing but set an attribute for each


def execute_for(state: State, node: ast.For | ast.AsyncFor) -> bool:
    iterable = iterated(state, evaluate(state, node.iter))
    in_turn = elements_in_turn(iterable, state.place(node.target)) or _numbers_in_attributes(node, iterable)
    is_short = 0 < len(in_turn) <= MOST_CALLED_IN_TURN
    if (is_short and _calls_each(node, in_turn)) or (0 < len(in_turn) <= MOST_SET_IN_TURN and _sets_each(node)):
        return _execute_for_each(state, node, in_turn)
    element = element_of(iterable, state.place(node.target))
    once = _goes_round_once(iterable)
    _execute_loop(state, node, lambda: assign(state, node.target, element), once or _is_never_empty(iterable), once)
    return True


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
    """Whether a loop over it goes round at least once."""
    if isinstance(iterable, Collection):
        return bool(iterable.items) and not iterable.open and not iterable.uniform
    if not isinstance(iterable, Call) or iterable.open or not iterable.args:
        return False
    if is_api(iterable.callee, "builtins.range"):
        numbers = [number for number in map(known, iterable.args) if isinstance(number, int)]
        return len(numbers) == len(iterable.args) and _is_range_with_steps(numbers)
    if is_api(iterable.callee, "builtins.enumerate"):
        return _is_never_empty(iterable.args[0])
    return is_api(iterable.callee, *HANDING_ON) and all(map(_is_never_empty, iterable.args))


def _is_range_with_steps(numbers: list[int]) -> bool:
    return len(numbers) < 4 and numbers[2:] != [0] and len(range(*numbers)) > 0


def _calls_each(node: ast.For | ast.AsyncFor, elements: tuple[Value, ...]) -> bool:
    """Whether a loop over a few known elements leaves none out, and calls each, `for wrap in (LossScaleOptimizer,
    Lookahead): optimizer = wrap(optimizer)`, has it called, `x = applied(layer, x)`, names an attribute by it, or
    yields something for each."""
    names = {inner.id for inner in nodes_in([node.target]) if isinstance(inner, ast.Name)}
    inside = nodes_in(node.body)
    if any(isinstance(inner, (ast.Break, ast.Continue)) for inner in inside):
        return False
    called = (inner.func.id for inner in inside if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name))
    hands_over = any(not isinstance(element, Known) for element in elements) and _hands_over_each(node, names)
    if hands_over or any(isinstance(inner, ast.Yield) for inner in inside):
        return True
    return not names.isdisjoint(called) or any(map(_names_attribute, inside))


def _names_attribute(node: ast.AST) -> bool:
    """Whether it is `setattr(self, f"{name}_head", …)` or `getattr(self, f"{name}_head")`, by a name that is made."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) < 2:
        return False
    return node.func.id in ("setattr", "getattr") and not isinstance(node.args[1], ast.Constant)


def _numbers_in_attributes(node: ast.For | ast.AsyncFor, iterable: Value) -> tuple[Value, ...]:
    """The known numbers of `for i in range(3): setattr(self, f"conv{i}", …)`; () of a loop that names no attribute."""
    if not isinstance(iterable, Call) or not is_api(iterable.callee, "builtins.range") or iterable.open:
        return ()
    numbers = [number for number in map(known, iterable.args) if isinstance(number, int)]
    if not numbers or len(numbers) != len(iterable.args) or not _is_range_with_steps(numbers):
        return ()
    several = range(*numbers)
    if len(several) > MOST_CALLED_IN_TURN or not any(map(_names_attribute, nodes_in(node.body))):
        return ()
    return tuple(Known(iterable.location, number) for number in several)


def _sets_each(node: ast.For | ast.AsyncFor) -> bool:
    """Whether it is `for name, value in settings.items(): setattr(self, name, value)`, on a condition or not."""
    body = node.body
    while len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse:
        body = body[0].body
    only = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if not isinstance(only, ast.Call) or not isinstance(only.func, ast.Name) or only.func.id != "setattr":
        return False
    names = {inner.id for inner in nodes_in([node.target]) if isinstance(inner, ast.Name)}
    return len(only.args) == 3 and isinstance(only.args[1], ast.Name) and only.args[1].id in names


def _hands_over_each(node: ast.For | ast.AsyncFor, names: set[str]) -> bool:
    """Whether a function is given the element and what the last round of the loop has made."""
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            made = {target.id for target in statement.targets if isinstance(target, ast.Name)}
            given = {argument.id for argument in statement.value.args if isinstance(argument, ast.Name)}
            if made & given and names & given:
                return True
    return False


def _execute_for_each(state: State, node: ast.For | ast.AsyncFor, elements: tuple[Value, ...]) -> bool:
    for element in elements:
        assign(state, node.target, element)
        if not execute_block(state, node.body):
            return False
    return execute_block(state, node.orelse)


def execute_while(state: State, node: ast.While) -> bool:
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
        names = frozenset(
            inner.id
            for inner in nodes_in(node.body)
            if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
        )
        node.assigned = names  # type: ignore[union-attr]
    assert isinstance(names, frozenset)
    return names
