"""Operators, conditional expressions, f-strings, arguments and others → values, and the events on the way."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.location import Location
from mpdoctor.program.context import Branch, Said
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import MISSING, Collection, Either, Item, Known, Unknown, Value, known, options
from mpdoctor.source.constant_folding import OPERATORS, folded_binary, folded_unary, is_computable, list_of_both
from mpdoctor.source.existence_checks import asks_whether_it_works, guarded_in_arm, question_of
from mpdoctor.source.interpreter.assignments import assign
from mpdoctor.source.interpreter.conditions import (
    asked_otherwise,
    certain_answer,
    leave_out,
    names_of_several,
    question_of_arm,
)
from mpdoctor.source.interpreter.containers.elements import contents_of, element_of
from mpdoctor.source.interpreter.containers.literals import spread_out, united
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_operation
from mpdoctor.source.interpreter.state.scopes import Closure, Keywords
from mpdoctor.source.joining import joined, joined_arms


def evaluate_constant(state: State, node: ast.Constant) -> Value:
    value: Value | None = getattr(node, "known", None)
    if value is None:
        place, known = state.place(node), node.value
        if isinstance(known, str) and known in HALF_POLICIES:
            value = Said(place, known, state.context)
        else:
            value = Known(place, known) if is_computable(known) else Unknown(place)
        node.known = value  # type: ignore[attr-defined]
    return value


def evaluate_binary(state: State, node: ast.BinOp) -> Value:
    left, right = evaluate(state, node.left), evaluate(state, node.right)
    return operation_on(state, node, OPERATORS[type(node.op)], left, right)


def operation_on(
    state: State, node: ast.expr | ast.stmt, symbol: str, left: Value, right: Value, augmented: bool = False
) -> Value:
    """The result of an operator: a constant or container where that can be computed, else an Operation, which is
    recorded."""
    if symbol == "|" and isinstance(left, Collection) and isinstance(right, Collection):
        return united(state.place(node), left, right)
    if symbol == "+" and (_is_one_of_several(left, right) or _is_one_of_several(right, left)):
        pairs = ((one, other) for one in options(left) for other in options(right))
        return joined(operation_on(state, node, symbol, one, other, augmented) for one, other in pairs)
    folded = folded_binary(symbol, left, right)
    if isinstance(folded, Known):
        return Known(state.place(node), folded.value)
    if folded is None and symbol == "+":
        folded = _with_elements_of(left, right, state.place(node))
    return folded or record_operation(state, state.place(node), symbol, (left, right), augmented)


def _with_elements_of(left: Value, right: Value, location: Location) -> Value | None:
    """The list `[output] + states`, where nothing is known of the states but that a function is given them; None beside
    numbers, as in `[0.5, 2.0] + array`."""
    is_list = isinstance(left, Collection) and left.kind == "list" and isinstance(right, (Parameter, Item))
    if not isinstance(left, Collection) or not is_list or not left.items or isinstance(left.items[0], Known):
        return None
    return list_of_both(left, Collection(location, "list", (Item(location, right, None),), open=True, uniform=True))


def _is_one_of_several(value: Value, beside: Value) -> bool:
    """Whether it is one of several things, a text among them, and stands beside a text; or one of several lists, as
    after a loop that may not run, beside a list."""
    if not isinstance(value, Either):
        return False
    if isinstance(beside, Collection):
        lists = (choice for choice in value.options if not isinstance(choice, (Parameter, Item)))
        return all(isinstance(choice, Collection) and choice.kind == beside.kind for choice in lists)
    return isinstance(known(beside), str) and any(isinstance(known(choice), str) for choice in value.options)


def evaluate_unary(state: State, node: ast.UnaryOp) -> Value:
    symbol, operand = OPERATORS[type(node.op)], evaluate(state, node.operand)
    folded = folded_unary(symbol, operand)
    if isinstance(folded, Known):
        return Known(state.place(node), folded.value)
    return record_operation(state, state.place(node), symbol, (operand,))


def evaluate_comparison(state: State, node: ast.Compare) -> Value:
    left, comparisons = evaluate(state, node.left), []
    for operator, comparator in zip(node.ops, node.comparators, strict=True):
        right = evaluate(state, comparator)
        comparisons.append(operation_on(state, node, OPERATORS[type(operator)], left, right))
        left = right
    if len(comparisons) == 1:
        return comparisons[0]
    return Operation(state.place(node), "and", tuple(comparisons), state.context, state.order)


def evaluate_boolean(state: State, node: ast.BoolOp) -> Value:
    """What `a and b`, or `a or b`, gives: one of its operands."""
    return joined_arms(_operands(state, node))


def evaluate_test(state: State, node: ast.expr) -> tuple[Value, dict[bool, tuple[Value, ...]]]:
    """What an `if` asks, and what else has the same answer with certainty in either arm (see `Branch.parts`)."""
    if not isinstance(node, ast.BoolOp):
        return evaluate(state, node), {True: (), False: ()}
    values, is_and = _operands(state, node), isinstance(node.op, ast.And)
    parts = tuple(value for value in values if not isinstance(value, Known))
    return joined(values), {True: parts if is_and else (), False: () if is_and else parts}


def _operands(state: State, node: ast.BoolOp) -> list[Value]:
    """The values of the operands. Behind a guard (`hasattr(x, "lr") and x.lr`) the context of the rest is guarded."""
    symbol, values = OPERATORS[type(node.op)], []
    before = state.context
    for operand in node.values:
        value = evaluate(state, operand)
        if isinstance(value, Known) and bool(value.value) == (symbol == "and") and operand is not node.values[-1]:
            continue
        values.append(value)
        if isinstance(value, Known):
            break
        if asks_whether_it_works(operand, value) and not state.context.guarded:
            state.context = state.context.but(guarded=True)
    state.context = before
    if len(values) > 1:
        record_operation(state, state.place(node), symbol, tuple(values))
    return values


def evaluate_conditional(
    state: State, node: ast.IfExp, behind_arm: Callable[[ast.expr, Value], None] | None = None
) -> Value:
    """The value of either arm. `behind_arm` is called with each, where the arm's question is still answered."""
    test, parts = evaluate_test(state, node.test)
    certain = certain_answer(state, node.test, test)
    question, several = question_of(node.test, test), names_of_several(state, node.test)
    choices = []
    for taken, arm in ((True, node.body), (False, node.orelse)):
        if certain is MISSING or bool(certain) is taken:
            before = state.context
            guards = guarded_in_arm(before, taken, question)
            asked = question_of_arm(state, node.test, test, taken)
            arm_of = Branch(id(node), taken, test, parts=parts[taken], question=asked)
            state.context = before.but(**guards, branches=(*before.branches, arm_of))
            left_out = leave_out(state, node.test, taken, several)
            otherwise = state.frame.otherwise
            state.frame.otherwise = otherwise | asked_otherwise(node.test, test, taken)
            choices.append(evaluate(state, arm))
            state.choose(choices[-1])
            if behind_arm is not None:
                behind_arm(arm, choices[-1])
            state.frame.otherwise = otherwise
            state.scope.names.update(left_out)
            state.context = before
    return joined_arms(choices)


def evaluate_walrus(state: State, node: ast.NamedExpr) -> Value:
    value = evaluate(state, node.value)
    assign(state, node.target, value)
    return value


def evaluate_f_string(state: State, node: ast.JoinedStr) -> Value:
    parts = [evaluate(state, part) for part in node.values]
    several = [number for number, part in enumerate(parts) if isinstance(part, Either)]
    if len(several) != 1:
        return _text_of(state, node, parts)
    before, behind = parts[: several[0]], parts[several[0] + 1 :]
    return joined(_text_of(state, node, [*before, choice, *behind]) for choice in options(parts[several[0]]))


def _text_of(state: State, node: ast.JoinedStr, parts: list[Value]) -> Value:
    texts = [part.value for part in parts if isinstance(part, Known) and isinstance(part.value, str)]
    if len(texts) == len(parts):
        return Known(state.place(node), "".join(texts))
    return Operation(state.place(node), "f-string", tuple(parts), state.context, state.order)


def evaluate_formatted(state: State, node: ast.FormattedValue) -> Value:
    value = evaluate(state, node.value)
    is_plain = node.format_spec is None and node.conversion == -1
    return joined(_part_of_f_string(choice, is_plain) for choice in options(value))


def _part_of_f_string(value: Value, is_plain: bool) -> Value:
    if is_plain and isinstance(value, Known) and isinstance(value.value, (str, int)):
        return Known(value.location, str(value.value)[:200])
    return value if not isinstance(value, Known) else Unknown(value.location)


def evaluate_starred(state: State, node: ast.Starred) -> Value:
    return evaluate(state, node.value)


def evaluate_await(state: State, node: ast.Await) -> Value:
    return evaluate(state, node.value)


def evaluate_yield(state: State, node: ast.Yield | ast.YieldFrom) -> Value:
    value = Known(state.place(node), None) if node.value is None else evaluate(state, node.value)
    loops = state.context.loops
    if isinstance(node, ast.Yield):
        state.frame.yields.append((value, loops))
        if state.frame.at_yield is not None:
            state.frame.at_yield(value)
    else:
        held = value.yielded if isinstance(value, Call) and value.yielded is not None else value
        is_whole = isinstance(held, Collection) and held.kind in ("list", "tuple") and not held.open
        given = held.items if is_whole and isinstance(held, Collection) else (element_of(value, value.location),)
        state.frame.yields += [(item, loops if is_whole else loops + 1) for item in given]
    return Unknown(state.place(node))


def evaluate_slice(state: State, node: ast.Slice) -> Value:
    for bound in (node.lower, node.upper, node.step):
        if bound is not None:
            evaluate(state, bound)
    return Unknown(state.place(node))


def evaluate_positional(
    state: State, node: ast.Call, called: Closure | None, bound: int
) -> tuple[tuple[Value, ...], bool]:
    """The positional arguments, and whether there may be more. Where a function of the user's own is called, of whose
    parameters `bound` are given already, `*rest` holds as many as it still needs: `loss_of(*model(x), y)`."""
    if called is None or [*map(type, node.args)].count(ast.Starred) != 1:
        args, is_open, _ = spread_out(state, node.args)
        return args, is_open
    needed = _count_of_needed_arguments(called, bound, node)
    values: list[Value] = []
    is_open = is_known = False
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            values.append(evaluate(state, argument))
            continue
        rest, before = contents_of(evaluate(state, argument.value)), len(values)
        if isinstance(rest, Collection) and rest.kind in ("list", "tuple"):
            values.extend(rest.items)
            is_open, is_known = rest.open, True
        elif needed is not None:
            count, place, is_open, is_known = needed - len(node.args) + 1, state.place(argument), True, True
            values.extend(Item(place, rest, Known(place, position)) for position in range(count))
    # Whose parameters the arguments behind `*rest` are is known only where its number is.
    return (tuple(values), is_open) if is_known else (tuple(values[:before]), True)


def _count_of_needed_arguments(called: Closure, bound: int, node: ast.Call) -> int | None:
    """How many positional arguments a function needs that have no default; None where that is not certain."""
    arguments = called.node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    given = {keyword.arg for keyword in node.keywords}
    if arguments.vararg is not None or None in given:
        return None
    needed = [name for name in names[bound : len(names) - len(arguments.defaults)] if name not in given]
    return len(needed) if len(needed) >= len(node.args) else None


def evaluate_keywords(state: State, nodes: list[ast.keyword]) -> tuple[Keywords, bool]:
    given: list[tuple[str, Value]] = []
    is_open = False
    for node in nodes:
        value = evaluate(state, node.value)
        if node.arg is not None:
            given.append((node.arg, value))
        elif isinstance(value, Collection) and value.kind == "dict":
            is_open = is_open or value.open
            for key, item in zip(value.keys, value.items, strict=True):
                if isinstance(key, Known) and isinstance(key.value, str):
                    given.append((key.value, item))
        else:
            is_open = True
    return tuple(dict(given).items()), is_open  # a name that comes twice is an error of the program's
