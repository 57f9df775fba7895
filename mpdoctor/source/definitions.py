"""`def`, `lambda` and `class`: the user's own functions and classes, and what the classes are to Keras."""

from __future__ import annotations

import ast
from abc import abstractmethod

from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.values import (
    Api,
    Attribute,
    Call,
    ClassFacts,
    Defined,
    FunctionFacts,
    Value,
    options,
)
from mpdoctor.source.following import TRANSPARENT, Following
from mpdoctor.source.objects import SETTING_UP
from mpdoctor.source.scopes import Closure, Scope

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Definitions(Following):
    def __init__(self) -> None:
        super().__init__()
        self._owner: ClassFacts | None = None
        self._qualified: list[str] = []

    @abstractmethod
    def block(self, body: list[ast.stmt]) -> bool: ...

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = tuple(self.evaluate(decorator) for decorator in node.decorator_list)
        closure = self._closure(node, node.name, decorators, "async def" if _is_async(node) else "def")
        value: Value = Defined(closure.facts.location, closure.facts)
        is_accessor = False
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
                closure.is_followable = False
                value = Call(closure.facts.location, decorator, (value,), (), self.context, self.next_order())
        if not is_accessor:
            self.bind(node.name, value)
            if self._owner is not None and self.scope.is_class:
                assert isinstance(self._owner.methods, dict)
                self._owner.methods[node.name] = closure.facts

    def function_from_lambda(self, node: ast.Lambda) -> Value:
        closure = self._closure(node, "<lambda>", (), "")
        return Defined(self.place(node), closure.facts)

    def _closure(self, node: FunctionNode, name: str, decorators: tuple[Value, ...], keyword: str) -> Closure:
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = {}
        for parameter, default in zip(
            positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
        ):
            defaults[parameter.arg] = self.evaluate(default)
        for parameter, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if given is not None:
                defaults[parameter.arg] = self.evaluate(given)
        facts = self.module.facts_of_nodes.get(id(node))
        if isinstance(facts, FunctionFacts):  # a `def` that runs again, with new surroundings
            closure = self.closures[id(facts)]
            closure.scope, closure.defaults = self.scope.enclosing_function, defaults
            return closure
        owner = self._owner if self.scope.is_class else None
        facts = FunctionFacts(
            name,
            ".".join((*self._qualified, name)),
            _parameter_names(arguments),
            defaults,
            decorators,
            owner,
            self.frame.function,
            self.place(node) if isinstance(node, ast.Lambda) else self.module.source.name_after(node, keyword, name),
        )
        self.changes.set(self.module.facts_of_nodes, id(node), facts)
        is_generator = self.module.source.may_yield and _is_generator(node)
        closure = Closure(facts, node, self.scope.enclosing_function, self.module, defaults, is_generator)
        self.closures[id(facts)] = closure
        self.module.functions.append(facts)
        self.module.closures.append(closure)
        return closure

    def define_class(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.evaluate(decorator)
        bases, _ = self.spread(node.bases)
        for keyword in node.keywords:
            self.evaluate(keyword.value)
        location = self.module.source.name_after(node, "class", node.name)
        own = self.module.facts_of_nodes.get(id(node))
        if not isinstance(own, ClassFacts):
            own = ClassFacts(node.name, bases, _kind(bases), {}, {}, {}, location)
            self.changes.created(own.attributes)
            self.changes.created(own.base_arguments)
            self.changes.set(self.module.facts_of_nodes, id(node), own)
            self.module.classes.append(own)
        outer_scope, outer_owner, first = self.scope, self._owner, len(self.module.closures)
        self.scope, self._owner = Scope(outer_scope, is_class=True), own
        self._qualified.append(node.name)
        self.block(node.body)
        for name, value in self.scope.names.items():
            if name not in own.methods:
                self.changes.set(own.attributes, name, value)
        self._qualified.pop()
        self.scope, self._owner = outer_scope, outer_owner
        closures = self.module.closures
        closures[first:] = sorted(closures[first:], key=_setting_up_first)
        self.bind(node.name, Defined(location, own))


def _kind(bases: tuple[Value, ...]) -> str | None:
    for base in bases:
        for one in options(base):
            kind = None
            if isinstance(one, Api):
                kind = kind_of_class(one.name)
            elif isinstance(one, Defined) and isinstance(one.of, ClassFacts):
                kind = one.of.kind
            if kind is not None:
                return kind
    return None


def _setting_up_first(closure: Closure) -> int:
    name = closure.facts.name
    return SETTING_UP.index(name) if name in SETTING_UP and closure.facts.owner is not None else len(SETTING_UP)


def _is_transparent(decorator: Value) -> bool:
    made = decorator.callee if isinstance(decorator, Call) else decorator
    return isinstance(made, Api) and made.is_(*TRANSPARENT)


def _is_async(node: ast.AST) -> bool:
    return isinstance(node, ast.AsyncFunctionDef)


def _parameter_names(arguments: ast.arguments) -> tuple[str, ...]:
    names = [node.arg for node in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg is not None:
        names.append("*" + arguments.vararg.arg)
    names.extend(node.arg for node in arguments.kwonlyargs)
    if arguments.kwarg is not None:
        names.append("**" + arguments.kwarg.arg)
    return tuple(names)


def _is_generator(node: FunctionNode) -> bool:
    """Whether the function's own body, without functions inside it, has a `yield`."""
    waiting: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(one))
    return False
