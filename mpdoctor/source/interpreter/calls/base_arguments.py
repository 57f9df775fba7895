"""The arguments that a class of the program's own gives to its base's `__init__`."""

from __future__ import annotations

import ast

from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts
from mpdoctor.program.values import Collection, Known, Value, is_api
from mpdoctor.source.interpreter.name_lookup import find
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Keywords
from mpdoctor.source.joining import joined


def remember_base_arguments(state: State, callee: Value, keywords: Keywords, node: ast.Call) -> None:
    """Remember what `super().__init__(dtype=…)` hands on where the class behind it is the user's own as well."""
    inside, called = state.frame.function, callee.of if isinstance(callee, Defined) else None
    if not isinstance(called, FunctionFacts) or inside is None or not called.name == inside.name == "__init__":
        return
    if called.owner is not None and inside.owner is not None and called.owner is not inside.owner:
        remember_base_arguments_of(state, inside.owner, keywords, node)


def remember_base_arguments_of(state: State, own: ClassFacts, keywords: Keywords, node: ast.Call) -> None:
    """Remember the arguments that a class gives to its base's `__init__`, but only those written out, in the call or
    before it (`kwargs["dtype"] = …`): the others in `**kwargs` differ from instance to instance."""
    written = {keyword.arg for keyword in node.keywords} | _keys_written_out(state, node)
    handed_on = any(keyword.arg is None for keyword in node.keywords)
    own_keywords = state.frame.keywords_set if handed_on else {}
    for name, value in {**dict(keywords), **own_keywords}.items():
        if name in written or name in own_keywords:
            old = own.base_arguments.get(name)
            state.walk.side_effects.set(own.base_arguments, name, value if old is None else joined((old, value)))


def _keys_written_out(state: State, node: ast.Call) -> set[str]:
    """The keys written out in what a call unpacks: `f(**{"dtype": "float32", **kwargs})`."""
    return set().union(*(_keys_unpacked(state, keyword.value) for keyword in node.keywords if keyword.arg is None))


def _keys_unpacked(state: State, node: ast.expr) -> set[str]:
    """The keys written out in `{"dtype": "float32", **kwargs}` or `dict(kwargs, dtype="float32")`, or in the dict that
    a local name holds."""
    match node:
        case ast.Dict(keys=keys):
            return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
        case ast.Call(func=ast.Name(id=name) as function) if is_api(find(state, name, function), "builtins.dict"):
            return {keyword.arg for keyword in node.keywords if keyword.arg is not None}
        case ast.Name(id=name):
            return _keys_of_local_dict(state, name)
    return set()


def _keys_of_local_dict(state: State, name: str) -> set[str]:
    """The keys of the dict that a local name holds, without those that come from the function's own `**kwargs`."""
    held, function = state.scope.find(name), state.frame.function
    if not isinstance(held, Collection) or function is None:
        return set()
    spread = (state.scope.find(parameter[2:]) for parameter in function.parameters if parameter.startswith("**"))
    given = {value.location for value in spread if value is not None}
    return {key.value for key in held.keys if isinstance(key, Known) and key.location not in given}
