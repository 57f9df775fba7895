"""Tests of `if`s and conditional expressions: the constants that they rule out in each arm (`if name == "…":`, `if name
in table:`), whether their answer is certain, and what they ask where another run may answer otherwise."""

from __future__ import annotations

import ast
import re

from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import MISSING, Either, Known, Value, certainly_known, options
from mpdoctor.source.existence_checks import attributes_asked
from mpdoctor.source.fixed_attributes import AttributesSet
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.state.events import Events
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import imports_of
from mpdoctor.source.joining import joined

_OF_AN_OBJECT = re.compile(r"\b(self|cls)\b")
_SAYING_NO = {ast.NotEq: "==", ast.IsNot: "is", ast.NotIn: "in"}
_SAYING_YES = {ast.Eq: "==", ast.Is: "is", ast.In: "in"}

# What changes nothing where it is evaluated once more.
_PLAIN = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Subscript, ast.Slice, ast.Tuple, ast.List)
_PARTS = (ast.expr_context, ast.cmpop, ast.boolop, ast.unaryop, ast.Set)
_OF_TEXTS = frozenset(("startswith", "endswith", "lower", "upper", "strip", "split", "replace", "isdigit", "keys"))
_OF_NUMBERS = frozenset(("isinf", "isnan", "isfinite"))
_OF_PYTHON = frozenset(("len", "str", "isinstance", "bool"))


def names_of_several(state: State, test: ast.expr) -> list[str]:
    """The names in a test that may be one of several constants."""
    names = state.scope.names
    return list(dict.fromkeys(node.id for node in _names_in(test) if _may_be_several(names.get(node.id))))


def leave_out(state: State, test: ast.expr, taken: bool, several: list[str]) -> dict[str, Value]:
    """Remove from the names in a test that may be one of `several` constants those for which it does not lead to this
    arm.

    Returns the earlier values of these names, by name."""
    names, before = state.scope.names, dict[str, Value]()
    for name in several:
        choices = options(names[name])
        left = [choice for choice in choices if _may_come_here(state, test, taken, name, choice)]
        if 0 < len(left) < len(choices):
            before[name] = names[name]
            names[name] = joined(left)
    return before


def _may_be_several(value: Value | None) -> bool:
    return isinstance(value, Either) and any(isinstance(choice, Known) for choice in value.options)


def _may_come_here(state: State, test: ast.expr, taken: bool, name: str, choice: Value) -> bool:
    if not isinstance(choice, Known):
        return True
    names, events, context = state.scope.names, state.events, state.context
    state.scope.names, state.events = {**names, name: choice}, Events()
    answer = certainly_known(evaluate(state, test))
    state.scope.names, state.events, state.context = names, events, context
    return answer is MISSING or bool(answer) is taken


def _names_in(test: ast.expr) -> list[ast.Name]:
    """The names in a test that only compares; [] if evaluating it again might change something. Kept on the node."""
    names: list[ast.Name] | None = getattr(test, "asked_about", None)
    if names is None:
        calls = [node for node in ast.walk(test) if isinstance(node, ast.Call) and _is_plain_call(node)]
        left_out = {id(node) for call in calls for node in (call, call.func)}
        rest = [node for node in ast.walk(test) if not isinstance(node, _PARTS) and id(node) not in left_out]
        called = [call.func.value for call in calls if isinstance(call.func, ast.Attribute)]
        is_plain = all(isinstance(node, _PLAIN) for node in rest)
        names = [node for node in (*rest, *called) if isinstance(node, ast.Name)] if is_plain else []
        test.asked_about = names  # type: ignore[attr-defined]
    return names


def _is_plain_call(node: ast.Call) -> bool:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _OF_TEXTS | _OF_NUMBERS and not node.keywords
    return isinstance(node.func, ast.Name) and node.func.id in _OF_PYTHON


def certain_answer(state: State, test: ast.expr, value: Value) -> object:
    """The answer to a test whose value is known and cannot be another one in another object, or later; MISSING where it
    may."""
    answer = certainly_known(value)
    return answer if answer is not MISSING and is_fixed(state, test) else MISSING


def is_fixed(state: State, test: ast.expr) -> bool:
    """Whether what a test reads is the same in all objects of the program."""
    return all(_is_set_once(state, name) for name in attributes_asked(test))


def _is_set_once(state: State, name: str) -> bool:
    """Whether one module of the program sets attributes of that name, each class once to a constant. Of a module that
    is walked apart from what imports it nobody knows."""
    script = state.walk.script
    if script is None:
        return False
    question = name, len(script.imports), len(state.modules)  # what is imported later may set it, too
    answer = state.walk.set_once.get(question)
    if answer is None:
        modules = [script.attributes_set, *(module.attributes_set for module, _ in imports_of(script))]
        answer = not any(module.sets_any for module in modules) and _is_set_in_one(modules, name)
        state.walk.set_once[question] = answer
    return answer


def _is_set_in_one(modules: list[AttributesSet], name: str) -> bool:
    setting = [module for module in modules if module.may_set(name)]
    return len(setting) == 1 and setting[0].sets_once(name)


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
