"""`except` clauses that hide what fails in their `try`: they pass, or only log it, and the program goes on."""

from __future__ import annotations

import ast
import sys

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import LIBRARIES
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import Answer, Api, Value, certainly_known, known
from mpdoctor.source.existence_checks import is_guarding_handler
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Closure, Scope

MOST_FOLLOWED = 3  # functions of the user's own that tell, called in one another
_TELLING = frozenset(("info", "debug", "warning", "warn", "exception", "print", "print_exc", "echo", "secho"))
_TELLING_NAMES = ("print", "pprint", "warn", "print_exc")
_ASIDE = ("warnings", "logging", "traceback", "gc", "time")  # modules of Python's that set nothing of a training
_STREAMS = ("sys.stderr", "sys.stdout", "stderr", "stdout")

if sys.version_info >= (3, 11):
    TryNode = ast.Try | ast.TryStar
else:
    TryNode = ast.Try


def hiding_handlers(state: State, node: TryNode) -> tuple[Location | None, Location | None]:
    """The place of the `except` clause that hides what fails in the `try`, such as a missing name, and of the one that
    hides a RuntimeError; None without one. A clause that assigns, returns something or tries another way hides nothing;
    one for ImportError alone may be about an optional library; and a loop that tries again hides nothing."""
    if state.frame.exits and _leaves_loop(node):
        return None, None
    hiding = [handler for handler in node.handlers if all(_only_tells(state, inner, None) for inner in handler.body)]
    of_names = [handler for handler in hiding if is_guarding_handler(handler) and not _is_about_import(handler)]
    of_devices = [handler for handler in hiding if "RuntimeError" in _names_caught(handler)]
    return _place_of_first(state, of_names), _place_of_first(state, of_devices)


def _leaves_loop(node: TryNode) -> bool:
    """Whether it ends the loop around it where nothing fails."""
    inside = (inner for statement in (*node.body, *node.orelse) for inner in ast.walk(statement))
    return any(isinstance(inner, (ast.Break, ast.Return)) for inner in inside)


def _place_of_first(state: State, handlers: list[ast.ExceptHandler]) -> Location | None:
    return state.module.source.location(handlers[0]) if handlers else None


def _names_caught(handler: ast.ExceptHandler) -> set[str]:
    return {name.id for name in ast.walk(handler.type) if isinstance(name, ast.Name)} if handler.type else set()


def _is_about_import(handler: ast.ExceptHandler) -> bool:
    caught = _names_caught(handler)
    return bool(caught) and caught <= {"ImportError", "ModuleNotFoundError"}


def _only_tells(state: State, statement: ast.stmt, inside: Closure | None, depth: int = 0) -> bool:
    """Whether a statement of a handler, or of a function that it calls (`inside`), does nothing but log or pass."""
    if isinstance(statement, (ast.Pass, ast.Continue)):
        return True
    if isinstance(statement, ast.Return):
        return _is_lost(state, statement.value, inside, depth)
    if isinstance(statement, ast.If):
        return all(_only_tells(state, inner, inside, depth) for inner in (*statement.body, *statement.orelse))
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and inside is not None:
        return _names_text(statement)
    return isinstance(statement, ast.Expr) and _tells_the_user(state, statement.value, inside, depth)


def _is_lost(state: State, returned: ast.expr | None, inside: Closure | None, depth: int) -> bool:
    """Whether a returned value is lost: nothing, the result of a function that the handler calls, or a constant that
    the caller drops."""
    if returned is None:
        return True
    if inside is not None:
        return _tells_the_user(state, returned, inside, depth)
    callers = state.frame.entered.callers
    return isinstance(returned, ast.Constant) and bool(callers) and callers[-1] in state.walk.dropped


def _names_text(statement: ast.Assign | ast.AnnAssign) -> bool:
    """Whether the statement gives a name to a text, as `text = f"… {error}"` does."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    is_text = isinstance(statement.value, (ast.Constant, ast.JoinedStr, ast.BinOp))
    return is_text and all(isinstance(target, ast.Name) for target in targets)


def _tells_the_user(state: State, value: ast.expr, inside: Closure | None, depth: int) -> bool:
    if isinstance(value, ast.Constant):
        return True
    if not isinstance(value, ast.Call):
        return False
    own = _own_function(state, value.func, inside)
    if own is not None:
        return depth < MOST_FOLLOWED and _is_telling_function(state, own, depth + 1)
    if isinstance(value.func, ast.Name):
        return value.func.id in _TELLING_NAMES
    if not isinstance(value.func, ast.Attribute):
        return False
    of = ast.unparse(value.func.value)
    is_log = "log" in of.lower() and value.func.attr in ("error", "critical", "log", "fatal")
    is_written = value.func.attr in ("write", "flush") and of in _STREAMS
    return value.func.attr in _TELLING or is_log or is_written or _is_aside(state, value.func.value, inside)


def _is_aside(state: State, module: ast.expr, inside: Closure | None) -> bool:
    """Whether it is `warnings`, or the name that it is imported by."""
    scope = state.scope if inside is None else inside.scope
    value = scope.find(module.id) if isinstance(module, ast.Name) else None
    return isinstance(value, Api) and value.name in _ASIDE


def _is_telling_function(state: State, own: Closure, depth: int) -> bool:
    if isinstance(own.node, ast.Lambda):
        return _tells_the_user(state, own.node.body, own, depth)
    return not own.is_wrapped and all(_only_tells(state, inner, own, depth) for inner in own.node.body)


def _own_function(state: State, called: ast.expr, inside: Closure | None) -> Closure | None:
    """The user's own function or method behind `report` or `self.report`; in a method, `self` is its class."""
    scope = state.scope if inside is None else inside.scope
    if isinstance(called, ast.Name):
        value = scope.find(called.id)
        closure = value.closure if isinstance(value, Defined) else None
        return closure if isinstance(closure, Closure) else _closure_of(state, getattr(value, "of", None))
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return None
    return _own_method(state, called.value.id, called.attr, scope, inside)


def _own_method(state: State, of: str, name: str, scope: Scope, inside: Closure | None) -> Closure | None:
    value = scope.find(of)
    own = class_of(value) if value is not None else None
    if inside is not None and inside.facts.owner is not None and inside.facts.parameters[:1] == (of,):
        own = inside.facts.owner
    method = own.find_method(name) if own is not None else None
    return _closure_of(state, method)


def _closure_of(state: State, function: object) -> Closure | None:
    return None if function is None else state.closures.get(id(function))


def answers_of_imports(
    node: TryNode, handler: ast.ExceptHandler, after_body: dict[str, Value], after_handler: dict[str, Value]
) -> dict[str, Value]:
    """The names that tell whether a `try` could import what it wants of TensorFlow or Keras: one constant at its end,
    the opposite one at the end of its `except`."""
    if not is_guarding_handler(handler) or not any(map(_imports_framework, node.body)):
        return {}
    opposite = {
        name: value
        for name, value in after_handler.items()
        if isinstance(certainly_known(value), bool)
        and certainly_known(after_body.get(name)) is (not certainly_known(value))
    }
    return {name: Answer(value.location, known(value)) for name, value in opposite.items()}


def _imports_framework(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        modules = [statement.module or ""]
    else:
        modules = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []
    return any(module.partition(".")[0] in LIBRARIES for module in modules)
