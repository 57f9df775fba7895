"""Signs that a program runs Keras 2: imports, names and calls that Keras 2 has or takes, and that fail in Keras 3."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.knowledge.keras2_arguments import OF_METHODS, of_keras2_alone
from mpdoctor.knowledge.keras_modules import is_of_keras_2
from mpdoctor.program.events import Call
from mpdoctor.program.values import Api, Attribute, Value, agreed, known, options

_IMPORTS = "imports `"
_MOST_NESTED = 8  # of `elif`, too
_GENERATOR_METHODS = ("fit_generator", "evaluate_generator", "predict_generator")
# Methods that only objects of Keras 2 have, by the kind of these.
_METHODS_OF = {"metric": ("reset_states",), "optimizer": ("variables", "get_weights", "get_updates", "get_gradients")}


def sign_of_keras2(path: str, tree: ast.Module, calls: Iterable[Call]) -> str:
    """The first sign of Keras 2 in this file, as a clause: "imports `keras.engine`", "calls `Adam(lr=…)`"; else "".
    What the program guards by a question of its own is no sign."""
    imports = sign_of_import(tree)
    if imports:
        return imports
    certain = (call for call in calls if call.location.path == path and not call.context.guarded)
    called = next(filter(None, map(_refused_call, certain)), "")
    return f"calls `{called}`" if called else ""


def sign_of_import(tree: ast.Module) -> str:
    """Like `sign_of_keras2`, by the imports of a file alone."""
    imported = import_of_keras2(tree.body)
    return f"{_IMPORTS}{imported}`" if imported else ""


def module_of_sign(sign: str) -> str:
    """The module whose import is the sign; "" where the sign is a call."""
    return sign[len(_IMPORTS) : -1] if sign.startswith(_IMPORTS) else ""


def import_of_keras2(statements: Iterable[ast.stmt], depth: int = 0) -> str:
    """The module of Keras 2 that these statements import on every path: an arm of an `if` or `try` may import another
    one. "" without one."""
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            name = next(filter(is_of_keras_2, _imported_names(statement)), "")
        elif isinstance(statement, ast.If | ast.Try) and depth < _MOST_NESTED:
            ways = [import_of_keras2(way, depth + 1) for way in _arms_of(statement)]
            name = ways[0] if all(ways) else ""
        else:
            continue
        if name:
            return name
    return ""


def _arms_of(statement: ast.If | ast.Try) -> list[list[ast.stmt]]:
    if isinstance(statement, ast.If):
        return [statement.body, statement.orelse]
    return [[*statement.body, *statement.orelse], *(handler.body for handler in statement.handlers)]


def _imported_names(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif statement.module and not statement.level:
        yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


def _refused_call(call: Call) -> str:
    """The call, where Keras 3 refuses it."""
    if isinstance(call.callee, Api):
        name = call.callee.name.rpartition(".")[2]
        return _with_argument(call, name, of_keras2_alone(call.callee.name))
    if not isinstance(call.callee, Attribute):
        return ""
    method = call.callee.name
    if method in _GENERATOR_METHODS or method in _METHODS_OF.get(_kind(call.receiver) or "", ()):
        return f"{method}(…)"
    if method == "add_weight" and isinstance(known(call.argument(0)), str):
        return f'add_weight("{known(call.argument(0))}", …)'
    if method == "save" and known(call.keyword("save_format")) == "tf":
        return 'save(save_format="tf")'
    return _with_argument(call, method, OF_METHODS.get(method, ()))


def _with_argument(call: Call, name: str, refused: tuple[str, ...]) -> str:
    return next((f"{name}({argument}=…)" for argument in refused if call.keyword(argument) is not None), "")


def _kind(value: Value | None) -> str | None:
    """ "metric" or "optimizer", of what Keras' own class makes."""
    kinds = {
        kind_of_class(option.callee.name) if isinstance(option, Call) and isinstance(option.callee, Api) else None
        for option in options(value)
    }
    return agreed(kinds)
