"""Which methods of Keras' optimizers a class of the user's overrides with something that they do not do."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import TYPE_CHECKING

from mpdoctor.knowledge.python_idioms import is_bare_constant
from mpdoctor.knowledge.wrapper_api import SCALING

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter

_METHODS = (
    *("apply", "apply_gradients", "minimize", "update_step", "get_config", "build"),
    *SCALING,
)


def overridden(keras: KerasAdapter, cls: type) -> tuple[str, ...]:
    """The names of the methods that the class overrides, and of a wrapper's methods that it has, without methods that
    only call what they override."""
    base = next((b for b in keras.optimizer_bases if issubclass(cls, b)), None)
    if base is None:
        return ()
    own = cls.__mro__[: cls.__mro__.index(base)]
    return tuple(
        name
        for name in _METHODS
        if getattr(cls, name, None) is not getattr(base, name, None)
        and not all(_only_hands_on(vars(above)[name], name) for above in own if name in vars(above))
    )


def _only_hands_on(method: object, name: str) -> bool:
    """Whether it does nothing but `return super().apply(grads, variables)`; False where no file has it."""
    called = _only_call(method)
    if called is None or not isinstance(called.func, ast.Attribute) or called.func.attr != name:
        return False
    given = (*called.args, *(keyword.value for keyword in called.keywords))
    return _is_super(called.func.value) and all(isinstance(value, (ast.Name, ast.Starred)) for value in given)


def _only_call(method: object) -> ast.Call | None:
    """The call that is all of a method's body."""
    try:
        function = ast.parse(textwrap.dedent(inspect.getsource(method))).body[0]  # type: ignore[arg-type]
    except (OSError, SyntaxError, TypeError):
        return None
    body = function.body if isinstance(function, ast.FunctionDef) else []
    done = [statement for statement in body if not is_bare_constant(statement)]
    only = done[0].value if len(done) == 1 and isinstance(done[0], (ast.Return, ast.Expr)) else None
    return only if isinstance(only, ast.Call) else None


def _is_super(of: ast.expr) -> bool:
    return isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id == "super"
