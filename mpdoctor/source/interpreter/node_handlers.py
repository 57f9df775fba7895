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
from mpdoctor.source.interpreter.containers import (
    evaluate_dictionary,
    evaluate_sequence,
    evaluate_subscript,
)
from mpdoctor.source.interpreter.context_managers import execute_with
from mpdoctor.source.interpreter.control_flow import execute_assert, execute_if, execute_match, execute_try
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
from mpdoctor.source.interpreter.loops import execute_for, execute_while, leave_loop
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


def _evaluated(
    kind: type[Expression], function: Callable[[State, Expression], Value]
) -> tuple[type[ast.expr], Evaluate]:
    """A row of the table: a type of node, and the function that evaluates it, which no node of another type is handed
    to."""
    return kind, cast("Evaluate", function)


def _executed(kind: type[Statement], function: Callable[[State, Statement], bool]) -> tuple[type[ast.stmt], Execute]:
    return kind, cast("Execute", function)


EXPRESSIONS: dict[type[ast.expr], Evaluate] = defaultdict(
    lambda: _not_followed,
    (
        _evaluated(ast.Constant, evaluate_constant),
        _evaluated(ast.Name, evaluate_name),
        _evaluated(ast.Attribute, evaluate_attribute),
        _evaluated(ast.Call, evaluate_call),
        _evaluated(ast.BinOp, evaluate_binary),
        _evaluated(ast.UnaryOp, evaluate_unary),
        _evaluated(ast.Compare, evaluate_comparison),
        _evaluated(ast.BoolOp, evaluate_boolean),
        _evaluated(ast.IfExp, evaluate_conditional),
        _evaluated(ast.Subscript, evaluate_subscript),
        _evaluated(ast.Tuple, evaluate_sequence),
        _evaluated(ast.List, evaluate_sequence),
        _evaluated(ast.Set, evaluate_sequence),
        _evaluated(ast.Dict, evaluate_dictionary),
        _evaluated(ast.ListComp, evaluate_comprehension),
        _evaluated(ast.SetComp, evaluate_comprehension),
        _evaluated(ast.GeneratorExp, evaluate_comprehension),
        _evaluated(ast.DictComp, evaluate_comprehension),
        _evaluated(ast.NamedExpr, evaluate_walrus),
        _evaluated(ast.Lambda, evaluate_lambda),
        _evaluated(ast.JoinedStr, evaluate_f_string),
        _evaluated(ast.FormattedValue, evaluate_formatted),
        _evaluated(ast.Starred, evaluate_starred),
        _evaluated(ast.Await, evaluate_await),
        _evaluated(ast.Yield, evaluate_yield),
        _evaluated(ast.YieldFrom, evaluate_yield),
        _evaluated(ast.Slice, evaluate_slice),
    ),
)
STATEMENTS: dict[type[ast.stmt], Execute] = defaultdict(
    lambda: _does_nothing,
    (
        _executed(ast.Expr, execute_expression),
        _executed(ast.Assign, execute_assignment),
        _executed(ast.AnnAssign, execute_annotated_assignment),
        _executed(ast.AugAssign, execute_augmented_assignment),
        _executed(ast.If, execute_if),
        _executed(ast.For, execute_for),
        _executed(ast.AsyncFor, execute_for),
        _executed(ast.While, execute_while),
        _executed(ast.Try, execute_try),
        _executed(ast.With, execute_with),
        _executed(ast.AsyncWith, execute_with),
        _executed(ast.Return, execute_return),
        _executed(ast.Raise, execute_raise),
        _executed(ast.Break, leave_loop),
        _executed(ast.Continue, leave_loop),
        _executed(ast.Import, execute_import),
        _executed(ast.ImportFrom, execute_import_from),
        _executed(ast.FunctionDef, execute_def),
        _executed(ast.AsyncFunctionDef, execute_def),
        _executed(ast.ClassDef, execute_class),
        _executed(ast.Assert, execute_assert),
        _executed(ast.Delete, execute_delete),
        _executed(ast.Global, execute_global),
        _executed(ast.Nonlocal, execute_nonlocal),
        _executed(ast.Match, execute_match),
    ),
)
if sys.version_info >= (3, 11):
    STATEMENTS |= (_executed(ast.TryStar, execute_try),)
