"""What a program's questions about its own data come to: `isinstance(settings, dict)`, `callable(made)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import Api, Collection, Known, Value, agreed, is_api, options

_PLAIN_KINDS = frozenset(("str", "bytes", "dict", "list", "tuple", "set"))


def certain_arm(test: ast.expr, asked: Sequence[Value]) -> bool | None:
    """The arm that runs for certain, as far as these questions of the test go: whether a setting is a dict or a text,
    and whether a class or function that comes from a table can be called, depends on no version of a library. None
    where the data may be of several kinds, or are not the program's own."""
    answers = [_answer(question) for question in asked]
    if isinstance(test, ast.BoolOp):
        is_certain = any(answers) if isinstance(test.op, ast.Or) else all(answers)
        return True if answers and is_certain else None
    return agreed(answers)


def _answer(question: Value) -> bool | None:
    if isinstance(question, Operation) and question.operator == "not":
        inside = _answer(question.operands[0])
        return None if inside is None else not inside
    if isinstance(question, Call) and is_api(question.callee, "builtins.callable"):
        given = options(question.argument(0))
        return True if given and all(isinstance(option, (Defined, Api)) for option in given) else None
    if isinstance(question, Call) and is_api(question.callee, "builtins.isinstance"):
        return agreed(_is_of_kind(option, question.argument(1)) for option in options(question.argument(0)))
    return None


def _is_of_kind(value: Value, kind: Value | None) -> bool | None:
    """Whether a constant or a collection is one of these kinds of Python's own; None where that is not known."""
    kinds = kind.items if isinstance(kind, Collection) else (kind,)
    names = {each.name.removeprefix("builtins.") for each in kinds if isinstance(each, Api)}
    if len(names) < len(kinds) or not names <= _PLAIN_KINDS:
        return None
    if isinstance(value, Collection):
        return value.kind in names
    return type(value.value).__name__ in names if isinstance(value, Known) else None
