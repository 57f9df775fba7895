"""Control flow: names bound along every path that the program may take, and joined where the paths meet."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mpdoctor.knowledge.python_idioms import is_main_test
from mpdoctor.program.context import Branch
from mpdoctor.program.events import Call
from mpdoctor.program.values import MISSING, Collection, Earlier, Known, Unknown, Value, certainly_known, is_api, known
from mpdoctor.source.existence_checks import (
    guarded_in_arm,
    is_answer,
    is_guarding_handler,
    may_prune,
    question_of,
)
from mpdoctor.source.interpreter.assignments import assign
from mpdoctor.source.interpreter.containers import element_of, elements_in_turn, iterated
from mpdoctor.source.interpreter.dispatch import evaluate, execute_block
from mpdoctor.source.interpreter.expressions import evaluate_test
from mpdoctor.source.interpreter.hidden_failures import TryNode, answers_of_imports, hiding_handlers
from mpdoctor.source.interpreter.questions import asked_otherwise, question_of_arm
from mpdoctor.source.interpreter.ruled_out import leave_out, names_of_several
from mpdoctor.source.interpreter.state.events import Events
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import merged_names
from mpdoctor.source.joining import joined, without_earlier
from mpdoctor.source.syntax_nodes import nodes_in

HANDING_ON = ("builtins.zip", "builtins.reversed", "builtins.sorted", "tqdm.tqdm", "tqdm.auto.tqdm")
MOST_CALLED_IN_TURN = 6  # elements that a loop goes through one by one
MOST_SET_IN_TURN = 40  # of a loop that does nothing but set an attribute for each


def execute_if(state: State, node: ast.If) -> bool:
    """Execute both arms and join the names bound in them; only one arm where the test is certain."""
    test, parts = evaluate_test(state, node.test)
    certain = certainly_known(test) if may_prune(node.test) else MISSING
    if certain is not MISSING:
        if not certain and state.module.name != "__main__" and is_main_test(node.test):
            state.module.main_blocks.append(node.body)
        return execute_block(state, node.body if certain else node.orelse)
    before, outer, question = state.scope.names, state.context, question_of(node.test, test)
    otherwise, several = state.frame.otherwise, names_of_several(state, node.test)
    ends: list[dict[str, Value]] = []
    branches = []
    for taken, body in ((True, node.body), (False, node.orelse)):
        asked = question_of_arm(state, node.test, test, taken)
        branch = Branch(id(node), taken, test, parts=parts[taken], question=asked)
        state.scope.names = dict(before)
        leave_out(state, node.test, taken, several)
        if body:
            guards = guarded_in_arm(outer, taken, question)
            state.context = outer.but(**guards, branches=(*outer.branches, branch))
            state.frame.otherwise = otherwise | asked_otherwise(node.test, test, taken)
        if execute_block(state, body):
            ends.append(state.scope.names)
            branches.append(branch)
        state.context, state.frame.otherwise = outer, otherwise
    if not ends:
        state.scope.names = before
        return False
    state.scope.names = merged_names(ends)
    if len(ends) == 1:  # what follows is the rest of the other arm
        (way,) = branches
        state.frame.otherwise = otherwise | asked_otherwise(node.test, test, way.taken)
        branch = Branch(way.statement, way.taken, way.test, state.frame.ends_program, way.parts, way.question)
        guards = guarded_in_arm(outer, branch.taken, question)
        state.context = state.context.but(**guards, branches=(*outer.branches, branch))
        if branch.only and len(outer.branches) == len(state.frame.entered.branches) and is_answer(test):
            state.frame.raises_where_missing = True
    return True


def execute_assert(state: State, node: ast.Assert) -> bool:
    """`assert not args.fp16` leaves what follows to the one answer, as `if args.fp16: raise …` does."""
    if not _asks_for_settings(node.test):
        evaluate(state, node.test)
        return True
    if not hasattr(node, "as_if"):
        node.as_if = ast.copy_location(  # type: ignore[attr-defined]
            ast.If(node.test, [], [ast.copy_location(ast.Raise(), node)]), node
        )
    return execute_if(state, node.as_if)  # type: ignore[attr-defined]


def _asks_for_settings(test: ast.expr) -> bool:
    """Whether a test asks for names and attributes alone, `not`, `and` and `or` between them."""
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not) and _asks_for_settings(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(map(_asks_for_settings, test.values))
    return isinstance(test, ast.Name) or (isinstance(test, ast.Attribute) and _asks_for_settings(test.value))


def execute_for(state: State, node: ast.For | ast.AsyncFor) -> bool:
    iterable = iterated(state, evaluate(state, node.iter))
    in_turn = elements_in_turn(iterable, state.place(node.target))
    is_short = 0 < len(in_turn) <= MOST_CALLED_IN_TURN
    if (is_short and _calls_each(node, in_turn)) or (0 < len(in_turn) <= MOST_SET_IN_TURN and _sets_each(node)):
        return _execute_for_each(state, node, in_turn)
    element = element_of(iterable, state.place(node.target))
    _execute_loop(state, node, lambda: assign(state, node.target, element), _is_never_empty(iterable))
    return True


def _is_never_empty(iterable: Value) -> bool:
    """Whether a loop over it goes round at least once."""
    if isinstance(iterable, Collection):
        return bool(iterable.items) and not iterable.open and not iterable.uniform
    if not isinstance(iterable, Call) or iterable.open or not iterable.args:
        return False
    if is_api(iterable.callee, "builtins.range"):
        numbers = [number for number in map(known, iterable.args) if isinstance(number, int)]
        return len(numbers) == len(iterable.args) and _counts(numbers)
    if is_api(iterable.callee, "builtins.enumerate"):
        return _is_never_empty(iterable.args[0])
    return is_api(iterable.callee, *HANDING_ON) and all(map(_is_never_empty, iterable.args))


def _counts(numbers: list[int]) -> bool:
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
    state: State, node: ast.For | ast.AsyncFor | ast.While, start: Callable[[], object], at_least_once: bool
) -> None:
    """Execute the body of a loop once. What it assigns is, at its start, the value from before or an unknown value."""
    before, outer = dict(state.scope.names), state.context
    assigned = _assigned_names(node)
    carried: dict[str, Earlier] = {}
    for name in assigned:
        old = state.scope.names.get(name)
        if old is not None:
            carried[name] = Earlier(old.location, len(outer.branches))
            state.scope.names[name] = joined((old, carried[name]))
    state.context = state.context.but(loops=outer.loops + 1)
    start()
    state.frame.exits.append([])
    goes_on = execute_block(state, node.body)
    ends = state.frame.exits.pop()
    if goes_on:
        ends.append(state.scope.names)
    for name, earlier in carried.items():
        earlier.ends.extend(names[name] for names in ends if name in names)
    if not at_least_once or not ends:
        ends.append(before)
    state.scope.names, state.context = merged_names(ends), outer
    for name in assigned & state.scope.names.keys():
        state.scope.names[name] = without_earlier(state.scope.names[name])
    execute_block(state, node.orelse)


def leave_loop(state: State, node: ast.Break | ast.Continue) -> bool:
    state.frame.ends_program = False
    if state.frame.exits:
        state.frame.exits[-1].append(dict(state.scope.names))
    return False


def execute_try(state: State, node: TryNode) -> bool:
    """Execute the body with each handler, and join the names of the paths that go on."""
    before, outer = state.scope.names, state.context
    state.scope.names = dict(before)
    asks = any(is_guarding_handler(handler) for handler in node.handlers)
    if asks:
        state.context = state.context.but(guarded=True)
    if node.handlers:
        swallowed, at_runtime = hiding_handlers(state, node)
        inside = {"swallowed": swallowed} if asks else {}
        state.context = state.context.but(**inside, runtime_swallowed=at_runtime)
    goes_on = execute_block(state, node.body)
    after_body = state.scope.names
    state.context = outer
    ends: list[dict[str, Value]] = []
    anywhere = merged_names([before, after_body])
    if goes_on and execute_block(state, node.orelse):
        ends.append(state.scope.names)
    for handler in node.handlers:
        state.scope.names = dict(anywhere)
        if handler.type is not None:
            evaluate(state, handler.type)
        if handler.name is not None:
            state.bind(handler.name, Unknown(state.module.source.location(handler)))
        # What stands in a handler is what the program does where the other way did not work.
        guarded = outer.guarded or is_guarding_handler(handler)
        state.context = state.context.but(guarded=guarded, branches=(*outer.branches, Branch(id(handler), taken=True)))
        if execute_block(state, handler.body):
            ends.append(state.scope.names | answers_of_imports(node, handler, after_body, state.scope.names))
        state.context = outer
    state.scope.names = merged_names(ends) if ends else anywhere
    return execute_block(state, node.finalbody) and bool(ends)


def execute_match(state: State, node: ast.Match) -> bool:
    """Execute the cases whose patterns may fit, and join the names bound in them."""
    subject = evaluate(state, node.subject)
    before, outer, ends = state.scope.names, state.context, []
    is_certain = False
    for case in node.cases:
        fits = _fits(case.pattern, subject if may_prune(node.subject) else Unknown())
        if fits is False:
            continue
        state.scope.names = dict(before)
        state.context = state.context.but(branches=(*outer.branches, Branch(id(case), taken=True, test=subject)))
        for pattern in ast.walk(case.pattern):
            name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
            if isinstance(name, str):
                state.bind(name, Unknown(subject.location))
        if case.guard is not None:
            evaluate(state, case.guard)
        if execute_block(state, case.body):
            ends.append(state.scope.names)
        state.context = outer
        if fits and case.guard is None:
            is_certain = True
            break
    if not is_certain:
        ends.append(before)
    state.scope.names = merged_names(ends) if ends else before
    return bool(ends)


def _fits(pattern: ast.pattern, subject: Value) -> bool | None:
    """Whether a pattern of constants matches a constant; None where that is not known. A plain name, and `_`, match
    all."""
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        return True
    if isinstance(pattern, ast.MatchOr):
        answers = [_fits(inner, subject) for inner in pattern.patterns]
        return True if True in answers else None if None in answers else False
    if not isinstance(subject, Known):
        return None
    if isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Constant):
        return bool(subject.value == pattern.value.value)
    return subject.value is pattern.value if isinstance(pattern, ast.MatchSingleton) else None


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
