"""Which function evaluates or executes which kind of syntax node.

An `evaluate_…` returns the value of an expression. An `execute_…` returns whether the program goes on behind the
statement: False after return, raise, break and continue."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar, cast

from mpdoctor.program.values import Unknown, Value
from mpdoctor.source.interpreter.attributes import evaluate_attribute
from mpdoctor.source.interpreter.calls.calls import evaluate_call
from mpdoctor.source.interpreter.comprehensions import evaluate_comprehension
from mpdoctor.source.interpreter.containers.elements import evaluate_subscript
from mpdoctor.source.interpreter.containers.literals import evaluate_dictionary, evaluate_sequence
from mpdoctor.source.interpreter.control_flow.branches import execute_assert, execute_if, execute_match, execute_try
from mpdoctor.source.interpreter.control_flow.context_managers import execute_with
from mpdoctor.source.interpreter.control_flow.loops import execute_for, execute_while, leave_loop
from mpdoctor.source.interpreter.definitions import evaluate_lambda, execute_class, execute_def
from mpdoctor.source.interpreter.expressions import (
    evaluate_await,
    evaluate_binary,
    evaluate_boolean,
    evaluate_comparison,
    evaluate_conditional,
    evaluate_constant,
    evaluate_f_string,
    evaluate_formatted,
    evaluate_slice,
    evaluate_starred,
    evaluate_unary,
    evaluate_walrus,
    evaluate_yield,
)
from mpdoctor.source.interpreter.imports import execute_import, execute_import_from
from mpdoctor.source.interpreter.name_lookup import evaluate_name
from mpdoctor.source.interpreter.state.interpreter_state import Evaluate, Execute, State
from mpdoctor.source.interpreter.statements import (
    execute_annotated_assignment,
    execute_assignment,
    execute_augmented_assignment,
    execute_delete,
    execute_expression,
    execute_global,
    execute_nonlocal,
    execute_raise,
    execute_return,
)

Expression = TypeVar("Expression", bound=ast.expr)
Statement = TypeVar("Statement", bound=ast.stmt)


def _not_followed(state: State, node: ast.expr) -> Value:
    return Unknown(state.place(node))


def _does_nothing(_state: State, _statement: ast.stmt) -> bool:
    return True


def _row_of_expression(
    kind: type[Expression], function: Callable[[State, Expression], Value]
) -> tuple[type[ast.expr], Evaluate]:
    """A row of the table: a type of node, and the function that evaluates it, which no node of another type is handed
    to."""
    return kind, cast("Evaluate", function)


def _row_of_statement(
    kind: type[Statement], function: Callable[[State, Statement], bool]
) -> tuple[type[ast.stmt], Execute]:
    return kind, cast("Execute", function)


EXPRESSIONS: dict[type[ast.expr], Evaluate] = defaultdict(
    lambda: _not_followed,
    (
        _row_of_expression(ast.Constant, evaluate_constant),
        _row_of_expression(ast.Name, evaluate_name),
        _row_of_expression(ast.Attribute, evaluate_attribute),
        _row_of_expression(ast.Call, evaluate_call),
        _row_of_expression(ast.BinOp, evaluate_binary),
        _row_of_expression(ast.UnaryOp, evaluate_unary),
        _row_of_expression(ast.Compare, evaluate_comparison),
        _row_of_expression(ast.BoolOp, evaluate_boolean),
        _row_of_expression(ast.IfExp, evaluate_conditional),
        _row_of_expression(ast.Subscript, evaluate_subscript),
        _row_of_expression(ast.Tuple, evaluate_sequence),
        _row_of_expression(ast.List, evaluate_sequence),
        _row_of_expression(ast.Set, evaluate_sequence),
        _row_of_expression(ast.Dict, evaluate_dictionary),
        _row_of_expression(ast.ListComp, evaluate_comprehension),
        _row_of_expression(ast.SetComp, evaluate_comprehension),
        _row_of_expression(ast.GeneratorExp, evaluate_comprehension),
        _row_of_expression(ast.DictComp, evaluate_comprehension),
        _row_of_expression(ast.NamedExpr, evaluate_walrus),
        _row_of_expression(ast.Lambda, evaluate_lambda),
        _row_of_expression(ast.JoinedStr, evaluate_f_string),
        _row_of_expression(ast.FormattedValue, evaluate_formatted),
        _row_of_expression(ast.Starred, evaluate_starred),
        _row_of_expression(ast.Await, evaluate_await),
        _row_of_expression(ast.Yield, evaluate_yield),
        _row_of_expression(ast.YieldFrom, evaluate_yield),
        _row_of_expression(ast.Slice, evaluate_slice),
    ),
)
STATEMENTS: dict[type[ast.stmt], Execute] = defaultdict(
    lambda: _does_nothing,
    (
        _row_of_statement(ast.Expr, execute_expression),
        _row_of_statement(ast.Assign, execute_assignment),
        _row_of_statement(ast.AnnAssign, execute_annotated_assignment),
        _row_of_statement(ast.AugAssign, execute_augmented_assignment),
        _row_of_statement(ast.If, execute_if),
        _row_of_statement(ast.For, execute_for),
        _row_of_statement(ast.AsyncFor, execute_for),
        _row_of_statement(ast.While, execute_while),
        _row_of_statement(ast.Try, execute_try),
        _row_of_statement(ast.With, execute_with),
        _row_of_statement(ast.AsyncWith, execute_with),
        _row_of_statement(ast.Return, execute_return),
        _row_of_statement(ast.Raise, execute_raise),
        _row_of_statement(ast.Break, leave_loop),
        _row_of_statement(ast.Continue, leave_loop),
        _row_of_statement(ast.Import, execute_import),
        _row_of_statement(ast.ImportFrom, execute_import_from),
        _row_of_statement(ast.FunctionDef, execute_def),
        _row_of_statement(ast.AsyncFunctionDef, execute_def),
        _row_of_statement(ast.ClassDef, execute_class),
        _row_of_statement(ast.Assert, execute_assert),
        _row_of_statement(ast.Delete, execute_delete),
        _row_of_statement(ast.Global, execute_global),
        _row_of_statement(ast.Nonlocal, execute_nonlocal),
        _row_of_statement(ast.Match, execute_match),
    ),
)
if sys.version_info >= (3, 11):
    STATEMENTS |= (_row_of_statement(ast.TryStar, execute_try),)
