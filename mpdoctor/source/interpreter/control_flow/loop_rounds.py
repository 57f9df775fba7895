"""The loops whose rounds are executed one by one, each with its own element."""

from __future__ import annotations

import ast

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.values import Collection, Known, Unknown, Value, is_api, known
from mpdoctor.source.interpreter.containers.elements import elements_in_turn
from mpdoctor.source.syntax_nodes import extends_list, nodes_in

MOST_CALLED_IN_TURN = 6  # elements that a loop goes through one by one
MOST_SET_IN_TURN = 40  # of a loop that does nothing but set an attribute for each
_NOT_BUILDING = (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While)
_FILLING = ("append", "extend", "insert")


@dataclass(frozen=True)
class LoopBody:
    """What the body of a loop does with the element of a round, as its syntax shows.

    calls_each
        Leaves no round out, and calls the element, `for wrap in (LossScaleOptimizer, Lookahead): optimizer =
        wrap(optimizer)`, or yields something for each.
    hands_over
        Leaves no round out, and has the element called, `x = applied(layer, x)`.
    names_attribute
        Leaves no round out, and names an attribute by the element.
    sets_each
        Does nothing but set an attribute for each.
    chooses_layer
        Calls layers or adds them, and the element decides which: `if i == last:`, `self.blocks[i](x)`,
        `model.add(layer)`. Not where it trains, or goes round in another loop.
    fills_list
        Fills a list with objects that it makes, `blocks.append(Dense(width))`, and does nothing of the above.
    """

    calls_each: bool = False
    hands_over: bool = False
    names_attribute: bool = False
    sets_each: bool = False
    chooses_layer: bool = False
    fills_list: bool = False


def rounds_in_turn(node: ast.For | ast.AsyncFor, iterable: Value, location: Location) -> tuple[Value, ...]:
    """What the loop binds, round by round, where its rounds are executed one by one; () of all others, whose body is
    executed once, for any element."""
    in_turn = elements_in_turn(iterable, location) or _numbers_of_range(iterable)
    if not 0 < len(in_turn) <= MOST_SET_IN_TURN:
        return ()
    body = _body_of(node)
    if len(in_turn) > MOST_CALLED_IN_TURN:
        return in_turn if body.sets_each else ()
    if isinstance(iterable, Call) and is_api(iterable.callee, "builtins.range"):
        return in_turn if body.names_attribute or body.chooses_layer else ()
    is_decided = body.names_attribute or body.chooses_layer or body.fills_list or body.sets_each
    return in_turn if is_decided or _are_called(body, in_turn) else ()


def last_rounds(node: ast.For | ast.AsyncFor, iterable: Value) -> tuple[Value, ...]:
    """What the loop binds at the end of a long list, and behind all that is not seen of one, `[*blocks, head]`, where
    it calls each."""
    if isinstance(iterable, Call) and is_api(iterable.callee, "builtins.enumerate") and len(iterable.args) == 1:
        number = Unknown(iterable.location)
        last = last_rounds(node, iterable.args[0])
        return tuple(Collection(iterable.location, "tuple", (number, element)) for element in last)
    if not isinstance(iterable, Collection) or iterable.kind in ("dict", "set") or iterable.uniform:
        return ()
    count = iterable.ending if iterable.open else 1
    last = iterable.items[len(iterable.items) - count :]
    return last if 0 < len(last) <= MOST_CALLED_IN_TURN and _are_called(_body_of(node), last) else ()


def _are_called(body: LoopBody, elements: tuple[Value, ...]) -> bool:
    return body.calls_each or (body.hands_over and any(not isinstance(element, Known) for element in elements))


def _body_of(node: ast.For | ast.AsyncFor) -> LoopBody:
    """What the loop's body does, remembered on the node."""
    body = getattr(node, "loop_body", None)
    if body is None:
        body = node.loop_body = _read_body(node)  # type: ignore[union-attr]
    assert isinstance(body, LoopBody)
    return body


def _read_body(node: ast.For | ast.AsyncFor) -> LoopBody:
    names = {inner.id for inner in nodes_in([node.target]) if isinstance(inner, ast.Name)}
    inside = nodes_in(node.body)
    if any(isinstance(inner, (ast.Break, ast.Continue)) for inner in inside):
        return LoopBody(sets_each=_sets_each(node))
    called = (inner.func.id for inner in inside if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name))
    yields = any(isinstance(inner, ast.Yield) for inner in inside)
    trains = any(isinstance(inner, _NOT_BUILDING) for inner in inside)
    derived = _with_computed_names(names, inside)
    builds = not trains and any(_calls_or_adds_layer(inner, derived) for inner in inside)
    return LoopBody(
        calls_each=yields or not names.isdisjoint(called),
        hands_over=_hands_over_each(node, names),
        names_attribute=any(map(_names_attribute, inside)),
        sets_each=_sets_each(node),
        chooses_layer=builds and any(_decides(inner, derived) for inner in inside),
        fills_list=builds and any(map(_fills_list, inside)),
    )


def _names_attribute(node: ast.AST) -> bool:
    """Whether it is `setattr(self, f"{name}_head", …)` or `getattr(self, f"{name}_head")`, by a name that is made."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) < 2:
        return False
    return node.func.id in ("setattr", "getattr") and not isinstance(node.args[1], ast.Constant)


def _numbers_of_range(iterable: Value) -> tuple[Value, ...]:
    """The numbers of a `range` that is known; () of everything else, and of a long one."""
    if not isinstance(iterable, Call) or not is_api(iterable.callee, "builtins.range") or iterable.open:
        return ()
    numbers = [number for number in map(known, iterable.args) if isinstance(number, int)]
    if not numbers or len(numbers) != len(iterable.args) or not is_range_with_steps(numbers):
        return ()
    several = range(*numbers)
    return () if len(several) > MOST_CALLED_IN_TURN else tuple(Known(iterable.location, n) for n in several)


def _with_computed_names(names: set[str], inside: list[ast.AST]) -> set[str]:
    """The names that a loop binds in each round, and those that its body computes from these."""
    found = set(names)
    for inner in inside:
        if isinstance(inner, ast.Assign) and not isinstance(inner.value, ast.Call) and _speaks_of(inner.value, found):
            found |= {target.id for target in inner.targets if isinstance(target, ast.Name)}
    return found


def _speaks_of(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(node))


def _decides(node: ast.AST, names: set[str]) -> bool:
    """Whether the element of the loop decides here what is called or added."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return _speaks_of(node.test, names)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) and _speaks_of(node.slice, names)
    return _method(node) == "add" and _adds_element(node, names)


def _calls_or_adds_layer(node: ast.AST, names: set[str]) -> bool:
    """Whether it is `Dense(3)(x)`, `blocks[i](x)`, `model.add(layer)`, or fills a list with what a class makes."""
    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Call, ast.Subscript)):
        return True
    return _fills_list(node) or (_method(node) == "add" and (_adds_element(node, names) or _makes_object(node)))


def _method(node: ast.AST) -> str:
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _adds_element(node: ast.AST, names: set[str]) -> bool:
    given = node.args[:1] if isinstance(node, ast.Call) else []
    return any(isinstance(argument, ast.Name) and argument.id in names for argument in given)


def _fills_list(node: ast.AST) -> bool:
    """Whether it is `blocks.append(Dense(width))` or `blocks += [Dense(width)]`, of objects that it makes."""
    return (extends_list(node) or _method(node) in _FILLING) and _makes_object(node)


def _makes_object(node: ast.AST) -> bool:
    """Whether a class is called in it, as the name says: `layers.Dense(3)`."""
    called = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    names = (f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else "" for f in called)
    return any(name[:1].isupper() for name in names)


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
