"""The loops whose rounds are executed one by one, each with its own element."""

from __future__ import annotations

import ast

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.values import Known, Value, is_api, known
from mpdoctor.source.interpreter.containers import elements_in_turn
from mpdoctor.source.syntax_nodes import nodes_in

MOST_CALLED_IN_TURN = 6  # elements that a loop goes through one by one
MOST_SET_IN_TURN = 40  # of a loop that does nothing but set an attribute for each


def rounds_in_turn(node: ast.For | ast.AsyncFor, iterable: Value, location: Location) -> tuple[Value, ...]:
    """What the loop binds, round by round, where its rounds are executed one by one; () of all others, whose body is
    executed once, for any element."""
    in_turn = elements_in_turn(iterable, location) or _numbers_in_attributes(node, iterable)
    is_short = 0 < len(in_turn) <= MOST_CALLED_IN_TURN
    if (is_short and _calls_each(node, in_turn)) or (0 < len(in_turn) <= MOST_SET_IN_TURN and _sets_each(node)):
        return in_turn
    return ()


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
    if not numbers or len(numbers) != len(iterable.args) or not is_range_with_steps(numbers):
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


def is_range_with_steps(numbers: list[int]) -> bool:
    return len(numbers) < 4 and numbers[2:] != [0] and len(range(*numbers)) > 0
