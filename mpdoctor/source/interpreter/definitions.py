"""`def`, `lambda` and `class`: the user's functions and classes, and what kind of Keras class each is."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Value, options
from mpdoctor.source.interpreter.call_inlining import inline_call
from mpdoctor.source.interpreter.calls.callees import TRANSPARENT
from mpdoctor.source.interpreter.calls.calls import call_value
from mpdoctor.source.interpreter.calls.metaclass_calls import tell_metaclass
from mpdoctor.source.interpreter.containers.literals import spread_out
from mpdoctor.source.interpreter.dispatch import evaluate, execute_block
from mpdoctor.source.interpreter.settings.data_classes import default_of_field, remember_members
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Closure, Scope
from mpdoctor.source.syntax_nodes import SETTING_UP, nodes_of_own_body

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def execute_def(state: State, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Bind the function, after its decorators and defaults were evaluated. Its body is executed where it is called."""
    decorators = tuple(evaluate(state, decorator) for decorator in node.decorator_list)
    closure = _closure(
        state, node, node.name, decorators, "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    )
    value: Value = Defined(closure.facts.location, closure.facts, closure=closure)
    is_accessor, written, method = False, dict(zip(map(id, decorators), node.decorator_list, strict=True)), closure
    for decorator in reversed(decorators):
        name = decorator.name if isinstance(decorator, Api) else ""
        if name == "builtins.staticmethod":
            closure.is_static = True
        elif name == "builtins.classmethod":
            closure.is_classmethod = True
        elif name in ("builtins.property", "functools.cached_property", "abc.abstractproperty"):
            closure.is_property = True
        elif isinstance(decorator, Attribute) and decorator.name in ("setter", "deleter", "getter"):
            is_accessor = True
        elif not _is_transparent(decorator):
            from mpdoctor.source.interpreter.calls.decorators import result_of_decorator  # few functions have one

            value = result_of_decorator(state, decorator, value, method, written[id(decorator)])
            method = _method_in(state, value) or method
    if not is_accessor:
        state.bind(node.name, value)
        if state.owner is not None and state.scope.is_class:
            assert isinstance(state.owner.methods, dict)
            state.owner.methods[node.name] = method.facts
    return True


def _method_in(state: State, value: Value) -> Closure | None:
    """The method of the class at hand that a value is."""
    of = value.of if isinstance(value, Defined) and state.scope.is_class else None
    return state.closures.get(id(of)) if isinstance(of, FunctionFacts) and of.owner is state.owner else None


def evaluate_lambda(state: State, node: ast.Lambda) -> Value:
    closure = _closure(state, node, "<lambda>", (), "")
    return Defined(state.place(node), closure.facts, closure=closure)


def _closure(state: State, node: FunctionNode, name: str, decorators: tuple[Value, ...], keyword: str) -> Closure:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = {}
    for parameter, default in zip(
        positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
    ):
        defaults[parameter.arg] = evaluate(state, default)
    for parameter, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if given is not None:
            defaults[parameter.arg] = evaluate(state, given)
    facts = state.module.facts_of_nodes.get(id(node))
    if isinstance(facts, FunctionFacts):  # a `def` that runs again, with new surroundings
        closure = state.closures[id(facts)]
        if facts.owner is not None:  # a method, which its class finds by its facts
            closure.scope, closure.defaults = state.scope.enclosing_function, defaults
            return closure
        return dataclasses.replace(closure, scope=state.scope.enclosing_function, defaults=defaults)
    owner = state.owner if state.scope.is_class else None
    facts = FunctionFacts(
        name,
        ".".join((*state.qualified, name)),
        _parameter_names(arguments),
        defaults,
        decorators,
        owner,
        state.frame.function,
        state.place(node) if isinstance(node, ast.Lambda) else state.module.source.name_after(node, keyword, name),
    )
    state.walk.side_effects.set(state.module.facts_of_nodes, id(node), facts)
    is_generator = state.module.source.may_yield and _is_generator(node)
    closure = Closure(facts, node, state.scope.enclosing_function, state.module, defaults, is_generator)
    closure.is_guarded = state.context.guarded
    state.closures[id(facts)] = closure
    state.module.functions.append(facts)
    state.module.closures.append(closure)
    return closure


def execute_class(state: State, node: ast.ClassDef) -> bool:
    """Execute the body of a class, and bind the class with its bases, methods and kind."""
    decorators = [evaluate(state, decorator) for decorator in node.decorator_list]
    bases, _, _ = spread_out(state, node.bases)
    given = [(keyword.arg, evaluate(state, keyword.value)) for keyword in node.keywords]
    location = state.module.source.name_after(node, "class", node.name)
    own = state.module.facts_of_nodes.get(id(node))
    if not isinstance(own, ClassFacts):
        own = ClassFacts(node.name, bases, _kind(bases), {}, {}, {}, location)
        state.walk.side_effects.created(own.attributes)
        state.walk.side_effects.created(own.base_arguments)
        state.walk.side_effects.set(state.module.facts_of_nodes, id(node), own)
        state.module.classes.append(own)
        for mixin in _mixins(own) if own.own_kind is not None else ():
            state.walk.side_effects.set(mixin.mixed_into, id(own), own)
    outer_scope, outer_owner, first = state.scope, state.owner, len(state.module.closures)
    state.scope, state.owner = Scope(outer_scope, is_class=True), own
    state.qualified.append(node.name)
    execute_block(state, node.body)
    own.body_names.update(state.scope.names)
    for name, value in state.scope.names.items():
        if name not in own.methods and not _take_as_method(state, own, name, value):
            state.walk.side_effects.set(own.attributes, name, default_of_field(value))
    remember_members(state, own)
    state.qualified.pop()
    state.scope, state.owner = outer_scope, outer_owner
    state.module.closures[first:] = sorted(state.module.closures[first:], key=_setting_up_first)
    value = Defined(location, own)
    _tell_base(state, own, value, given)
    tell_metaclass(state, own, value, bases, dict(given).get("metaclass"))
    for decorator in reversed(decorators):
        if isinstance(decorator, Defined) and isinstance(decorator.of, FunctionFacts):
            call_value(state, decorator, (value,), location)  # it may keep the class somewhere
    state.bind(node.name, value)
    return True


def _take_as_method(state: State, own: ClassFacts, name: str, value: Value) -> bool:
    if isinstance(value, Defined) and isinstance(value.of, FunctionFacts):
        from mpdoctor.source.interpreter.calls.taken_methods import take_as_method  # few classes take one

        return take_as_method(state, own, name, value.of)
    return False


def _tell_base(state: State, own: ClassFacts, value: Defined, given: list[tuple[str | None, Value]]) -> None:
    """Follow the `__init_subclass__` of the nearest base that has one, which Python calls, and which may keep the class
    somewhere."""
    telling = (base.methods.get("__init_subclass__") for base in own.lineage() if base is not own)
    facts = next((method for method in telling if method is not None), None)
    closure = state.closures.get(id(facts)) if facts is not None else None
    if closure is not None:
        keywords = tuple((name, argument) for name, argument in given if name is not None and name != "metaclass")
        is_open = any(name is None for name, _ in given)
        inline_call(state, closure, (value,), keywords, is_open, value.location)


def _kind(bases: tuple[Value, ...]) -> str | None:
    for base in bases:
        for choice in options(base):
            kind = None
            if isinstance(choice, Api):
                kind = kind_of_class(choice.name)
            elif isinstance(choice, Defined) and isinstance(choice.of, ClassFacts):
                kind = choice.of.own_kind
            if kind is not None:
                return kind
    return None


def _mixins(own: ClassFacts) -> Iterator[ClassFacts]:
    """The bases without a kind of their own, and those bases' own such bases."""
    for base in own.bases:
        for choice in options(base):
            if isinstance(choice, Defined) and isinstance(choice.of, ClassFacts) and choice.of.own_kind is None:
                yield choice.of
                yield from _mixins(choice.of)


def _setting_up_first(closure: Closure) -> int:
    name = closure.facts.name
    return SETTING_UP.index(name) if name in SETTING_UP and closure.facts.owner is not None else len(SETTING_UP)


def _is_transparent(decorator: Value) -> bool:
    made = decorator.callee if isinstance(decorator, Call) else decorator
    return isinstance(made, Api) and made.is_(*TRANSPARENT)


def _parameter_names(arguments: ast.arguments) -> tuple[str, ...]:
    names = [node.arg for node in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg is not None:
        names.append("*" + arguments.vararg.arg)
    names.extend(node.arg for node in arguments.kwonlyargs)
    if arguments.kwarg is not None:
        names.append("**" + arguments.kwarg.arg)
    return tuple(names)


def _is_generator(node: FunctionNode) -> bool:
    """Whether the function's own body has a `yield`."""
    return any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for inner in nodes_of_own_body(node))
