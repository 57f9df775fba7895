"""Tests of `if`s that are constant in this walk and may differ in another run of the program: `if not self.mixed:`."""

from __future__ import annotations

import ast
import re

from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import Known, Value
from mpdoctor.source.interpreter.state.interpreter_state import State

_OF_AN_OBJECT = re.compile(r"\b(self|cls)\b")
_SAYING_NO = {ast.NotEq: "==", ast.IsNot: "is", ast.NotIn: "in"}
_SAYING_YES = {ast.Eq: "==", ast.Is: "is", ast.In: "in"}


def question_of_arm(state: State, asked: ast.expr, test: Value, taken: bool) -> tuple[str, bool] | None:
    """The question in words and its answer in this arm; None where the answer is no constant, and `test` itself tells
    what is asked. One file means one thing by the same words, one class by `self`, and all files by a class's name."""
    if not isinstance(test, Known):
        return None
    words, is_said = _in_words(asked)
    owner = state.context.owner if _OF_AN_OBJECT.search(words) else None
    asked_of = state.scope.find(words.partition(".")[0])
    path = asked_of.of.location.path if isinstance(asked_of, Defined) else state.module.source.path
    return f"{path}:{'' if owner is None else owner.name}:{words}", taken is is_said


def _in_words(asked: ast.expr) -> tuple[str, bool]:
    """The test without its negations, and whether it stands for itself (True) or its opposite. Cached on the node."""
    answer: tuple[str, bool] | None = getattr(asked, "in_words", None)
    if answer is None:
        answer = asked.in_words = _without_negation(asked)  # type: ignore[attr-defined]
    return answer


def _without_negation(asked: ast.expr) -> tuple[str, bool]:
    if isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Not):
        words, is_said = _without_negation(asked.operand)
        return words, not is_said
    kind = type(asked.ops[0]) if isinstance(asked, ast.Compare) and len(asked.ops) == 1 else None
    if isinstance(asked, ast.Compare) and (kind in _SAYING_NO or kind in _SAYING_YES):
        symbol = _SAYING_NO.get(kind) or _SAYING_YES[kind]
        return f"{ast.unparse(asked.left)} {symbol} {ast.unparse(asked.comparators[0])}", kind in _SAYING_YES
    return ast.unparse(asked), True


def asked_otherwise(asked: ast.expr, test: Value, taken: bool) -> frozenset[str]:
    """The attributes in a test, as they are written, of which this arm gets something else than what this walk knows:
    `self.name` in the second arm of `if self.name == "float32"` where that is its name."""
    if not isinstance(test, Known) or bool(test.value) is taken:
        return frozenset()
    return frozenset(ast.unparse(node) for node in ast.walk(asked) if isinstance(node, ast.Attribute))
