"""What a decorator of the user's own makes of a function: the function itself, another one, or what is not known."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Value
from mpdoctor.source.interpreter.calls.callees import closure_of
from mpdoctor.source.interpreter.calls.calls import call_value
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Closure
from mpdoctor.source.syntax_nodes import SETTING_UP, nodes_of_own_body

_SETTING_POLICY = ("set_global_policy", "set_dtype_policy", "set_policy")


def result_of_decorator(state: State, decorator: Value, value: Value, closure: Closure, written: ast.expr) -> Value:
    """The result of a decorator of the user's own for a function; of other decorators the result is not known."""
    if _is_own(decorator):
        made = call_value(state, decorator, (value,), closure.facts.location)
        is_itself = isinstance(made, Defined) and made.of is closure.facts
        wrapper = closure_of(state, made) if isinstance(made, Defined) and not is_itself else None
        if wrapper is not None:
            state.closures[id(wrapper.facts)].is_wrapper = True
        if is_itself or (wrapper is not None and _hands_on(wrapper)):
            return value
        closure.facts.changed_by.append(decorator)
        if not state.scope.is_class and (isinstance(made, Defined) or _is_called(made)):
            closure.is_wrapped = True
            return made
        method = None if wrapper is None else _method_from_wrapper(state, wrapper, closure, written)
        if method is not None:
            closure.is_wrapped = True
            return Defined(closure.facts.location, method.facts, closure=method)
    closure.is_inlinable = False
    return Call(closure.facts.location, decorator, (value,), (), state.context, state.next_order())


def _method_from_wrapper(state: State, wrapper: Closure, of: Closure, decorator: ast.expr) -> Closure | None:
    """The method that takes the place of a decorated one: the wrapper's body, with the name, the class and the
    arguments of the decorated method. None for a wrapper that is no plain function of the object itself."""
    parameters = wrapper.node.args.args
    is_special = of.is_static or of.is_classmethod or of.is_property or of.facts.name in SETTING_UP
    if not state.scope.is_class or isinstance(wrapper.node, ast.Lambda) or wrapper.is_generator:
        return None
    if is_special or not (parameters or wrapper.node.args.vararg):
        return None
    facts = state.module.facts_of_nodes.get(id(decorator))
    if not isinstance(facts, FunctionFacts):
        facts = dataclasses.replace(of.facts, changed_by=[])
        state.walk.side_effects.set(state.module.facts_of_nodes, id(decorator), facts)
    method = dataclasses.replace(wrapper, facts=facts, is_wrapper=True, stands_for=of)
    if id(facts) not in state.closures:
        state.module.closures.append(method)
    state.closures[id(facts)] = method
    return method


def _hands_on(wrapper: Closure) -> bool:
    """Whether a decorator's wrapper returns what the decorated function returns for the same arguments: it ends in
    `return function(*args, **kwargs)`, or returns a name that holds this and nothing else, under no context
    manager, and sets no policy."""
    nodes = list(nodes_of_own_body(wrapper.node))
    if isinstance(wrapper.node, ast.Lambda) or wrapper.is_generator or any(map(_is_managed_or_sets_policy, nodes)):
        return False
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    results = [result for value in returned for result in _what_it_holds(value, nodes)]
    return bool(results) and all(_is_handed_all(result, wrapper.node.args) for result in results)


def _is_managed_or_sets_policy(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name in _SETTING_POLICY or isinstance(node, (ast.With, ast.AsyncWith))


def _what_it_holds(returned: ast.expr | None, nodes: list[ast.AST]) -> list[ast.expr | None]:
    """What a returned expression stands for: of a name all that is assigned to it, None where it is given a value in
    another way; anything else itself."""
    if not isinstance(returned, ast.Name):
        return [returned]
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id == returned.id]
    bound = [node for node in names if not isinstance(node.ctx, ast.Load)]
    assigned = [value for target, value in _assignments(nodes) if target in bound]
    return [*assigned] if bound and len(assigned) == len(bound) else [None]


def _assignments(nodes: list[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """(target, value) of each assignment among these nodes."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign):
            yield node.target, node.value


def _is_handed_all(result: ast.expr | None, parameters: ast.arguments) -> bool:
    """Whether it is the call of a name with just these parameters."""
    if not isinstance(result, ast.Call) or not isinstance(result.func, ast.Name):
        return False
    positional = [node.arg for node in (*parameters.posonlyargs, *parameters.args)]
    positional += [] if parameters.vararg is None else ["*" + parameters.vararg.arg]
    named: list[tuple[str | None, str]] = [(node.arg, node.arg) for node in parameters.kwonlyargs]
    named += [] if parameters.kwarg is None else [(None, parameters.kwarg.arg)]
    is_positional = [ast.unparse(argument) for argument in result.args] == positional
    return is_positional and [(keyword.arg, ast.unparse(keyword.value)) for keyword in result.keywords] == named


def _is_own(decorator: Value) -> bool:
    """Whether it is a function or a class of the user's own, or an object that can be called."""
    return isinstance(decorator, Defined) or _is_called(decorator)


def _is_called(made: Value) -> bool:
    own = class_of(made)
    return own is not None and own.kind is None and own.find_method("__call__") is not None
