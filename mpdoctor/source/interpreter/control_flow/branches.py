"""Control flow: names bound along every path that the program may take, and joined where the paths meet."""

from __future__ import annotations

import ast

from mpdoctor.knowledge.python_idioms import is_main_test
from mpdoctor.program.context import Branch
from mpdoctor.program.values import MISSING, Known, Unknown, Value
from mpdoctor.source.existence_checks import Question, guarded_in_arm, is_answer, is_guarding_handler, question_of
from mpdoctor.source.interpreter.conditions import (
    asked_otherwise,
    certain_answer,
    is_fixed,
    leave_out,
    names_of_several,
    question_of_arm,
)
from mpdoctor.source.interpreter.control_flow.hidden_failures import TryNode, answers_of_imports, hiding_handlers
from mpdoctor.source.interpreter.dispatch import evaluate, execute_block
from mpdoctor.source.interpreter.expressions import evaluate_test
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import merged_names
from mpdoctor.source.same_in_each_arm import handed_in_each_arm


def execute_if(state: State, node: ast.If) -> bool:
    """Execute both arms and join the names bound in them; only one arm where the test is certain."""
    test, parts = evaluate_test(state, node.test)
    certain = certain_answer(state, node.test, test)
    if certain is not MISSING:
        if not certain and state.module.name != "__main__" and is_main_test(node.test):
            state.module.main_blocks.append(node.body)
        return execute_block(state, node.body if certain else node.orelse)
    before, outer, question = state.scope.names, state.context, question_of(node.test, test)
    otherwise, several = state.frame.otherwise, names_of_several(state, node.test)
    ends: list[dict[str, Value]] = []
    branches = []
    in_each_arm = state.frame.in_each_arm
    if question.asks:
        state.frame.in_each_arm = handed_in_each_arm(node, (node.body, node.orelse)), outer
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
    state.frame.in_each_arm = in_each_arm
    if not ends:
        state.scope.names = before
        return False
    state.scope.names = merged_names(ends)
    if len(ends) == 1:
        state.frame.otherwise = otherwise | asked_otherwise(node.test, test, branches[0].taken)
        _go_on_in_other_arm(state, branches[0], question, is_answer(test))
    return True


def _go_on_in_other_arm(state: State, way: Branch, question: Question, is_answer: bool) -> None:
    """Count what follows an `if` as the rest of one arm, where the other one leaves the function, loop or program."""
    outer = state.context
    branch = Branch(way.statement, way.taken, way.test, state.frame.ends_program, way.parts, way.question)
    guards = guarded_in_arm(outer, branch.taken, question)
    state.context = outer.but(**guards, branches=(*outer.branches, branch))
    if branch.only and len(outer.branches) == len(state.frame.entered.branches) and is_answer:
        state.frame.raises_where_missing = True


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


def execute_try(state: State, node: TryNode) -> bool:
    """Execute the body with each handler, and join the names of the paths that go on."""
    before, outer = state.scope.names, state.context
    state.scope.names = dict(before)
    asks = any(is_guarding_handler(handler) for handler in node.handlers)
    in_each_arm = state.frame.in_each_arm
    if asks:
        state.context = state.context.but(guarded=True)
        arms = (
            [*node.body, *node.orelse],
            *(handler.body for handler in node.handlers if is_guarding_handler(handler)),
        )
        state.frame.in_each_arm = handed_in_each_arm(node, arms), outer
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
    state.frame.in_each_arm = in_each_arm
    state.scope.names = merged_names(ends) if ends else anywhere
    return execute_block(state, node.finalbody) and bool(ends)


def execute_match(state: State, node: ast.Match) -> bool:
    """Execute the `if` that asks the same, where all patterns are constants and plain names; otherwise each case that
    may fit."""
    subject = evaluate(state, node.subject)
    if not hasattr(node, "as_if"):
        node.as_if = _as_if(node.cases, node.subject)  # type: ignore[attr-defined]
    if isinstance(node.as_if, ast.If):  # type: ignore[attr-defined]
        state.bind(_SUBJECT, subject)
        return execute_if(state, node.as_if)  # type: ignore[attr-defined]
    return _execute_cases(state, node, subject)


_SUBJECT = "<subject>"  # no name that a program can have


def _as_if(cases: list[ast.match_case], subject: ast.expr) -> ast.stmt | None:
    """The cases as an `if`, with an arm for each; None where one takes its subject apart."""
    otherwise: list[ast.stmt] = []
    for case in reversed(cases):
        asked = subject if _asks_for_settings(subject) else ast.copy_location(ast.Name(_SUBJECT, ast.Load()), subject)
        test, bound = _as_test(case.pattern, asked)
        if test is None or (bound and case.guard is not None):
            return None
        parts = [part for part in (test, case.guard) if part is not None]
        asks = parts[0] if len(parts) == 1 else ast.copy_location(ast.BoolOp(ast.And(), parts), test)
        if isinstance(test, ast.Constant) and case.guard is None:
            otherwise = [*bound, *case.body]
        else:
            otherwise = [ast.copy_location(ast.If(asks, [*bound, *case.body], otherwise), case.pattern)]
    return otherwise[0] if len(otherwise) == 1 else None


def _as_test(pattern: ast.pattern, subject: ast.expr) -> tuple[ast.expr | None, list[ast.stmt]]:
    """What a pattern asks of the subject, True for one that fits all, and the statement that binds its name; None where
    it takes the subject apart."""
    test: ast.expr | None = None
    bound: list[ast.stmt] = []
    if isinstance(pattern, ast.MatchValue):
        test = ast.Compare(subject, [ast.Eq()], [pattern.value])
    elif isinstance(pattern, ast.MatchSingleton):
        test = ast.Compare(subject, [ast.Is()], [ast.copy_location(ast.Constant(pattern.value), pattern)])
    elif isinstance(pattern, ast.MatchOr) and all(isinstance(inner, ast.MatchValue) for inner in pattern.patterns):
        values = [inner.value for inner in pattern.patterns if isinstance(inner, ast.MatchValue)]
        listed = ast.copy_location(ast.Tuple(values, ast.Load()), pattern)
        test = ast.Compare(subject, [ast.In()], [listed])
    elif isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        test = ast.Constant(value=True)
        if pattern.name is not None:
            target = ast.copy_location(ast.Name(pattern.name, ast.Store()), pattern)
            bound = [ast.copy_location(ast.Assign([target], subject), pattern)]
    return (None if test is None else ast.copy_location(test, pattern)), bound


def _execute_cases(state: State, node: ast.Match, subject: Value) -> bool:
    before, outer, ends = state.scope.names, state.context, []
    is_certain = False
    for case in node.cases:
        fits = _fits(case.pattern, subject if is_fixed(state, node.subject) else Unknown())
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
