"""Calls: what they give, and the user's own functions followed with the arguments that they are given."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections import Counter

from mpdoctor.facts.location import Location
from mpdoctor.program.values import (
    Api,
    Attribute,
    Call,
    ClassFacts,
    Collection,
    Defined,
    Either,
    FunctionFacts,
    Instance,
    Known,
    Parameter,
    Value,
    is_api,
    options,
)
from mpdoctor.source.arithmetic import joined
from mpdoctor.source.known_calls import Keywords, KnownCalls
from mpdoctor.source.scopes import Closure, Frame, Scope

DEEPEST_CALL = 6  # functions followed into one another
DEEPEST_ALONE = 3  # the same from a function that nobody calls: of its parameters little is known
MOST_VISITS = 64  # times that one function is followed
MOST_VISITS_ALONE = 4  # the same from functions that nobody calls: what they hand on is mostly as little known
MOST_FOLLOWED = 40_000  # statements walked inside followed functions, all together
MOST_PLAIN = 100  # of them in one function that never names TensorFlow or Keras: a reader of configurations, say

# Calling what these return calls the function that they were given.
TRANSPARENT = (
    "tensorflow.function",
    "tensorflow.autograph.experimental.do_not_convert",
    "tensorflow.recompute_grad",
    "functools.lru_cache",
    "functools.cache",
    "functools.wraps",
    "keras.saving.register_keras_serializable",
    "keras.utils.register_keras_serializable",
    "contextlib.contextmanager",
    "abc.abstractmethod",
    "typing.overload",
    "typing.final",
    "jax.jit",
)
_RUNS = ("run", "experimental_run_v2", "call_for_each_replica")


class Following(KnownCalls):
    def __init__(self) -> None:
        super().__init__()
        self.stack: list[Closure] = []
        self.followed = 0
        self.visits: Counter[int] = Counter()  # of closures, by id
        self.spent: Counter[int] = Counter()  # statements walked in closures, by id
        self.walked: set[int] = set()  # closures, by id
        self._instantiated: set[int] = set()

    @property
    def instantiated(self) -> set[int]:
        return self._instantiated

    @abstractmethod
    def walk_body(self, closure: Closure) -> None: ...

    def call(self, node: ast.Call, dropped: bool = False) -> Value:
        function = node.func
        if isinstance(function, ast.Attribute):
            callee = self._attribute(function, is_called=True)
        else:
            callee = self.evaluate(function)
        args, is_open = self.spread(node.args)
        keywords, more = self._keywords(node.keywords)
        location = self.place(node)
        is_open = is_open or more
        if not isinstance(callee, Either):
            return self._call_one(callee, args, keywords, is_open, location, dropped, node)
        return joined(self._call_one(one, args, keywords, is_open, location, dropped, node) for one in callee.options)

    def _keywords(self, nodes: list[ast.keyword]) -> tuple[Keywords, bool]:
        found: list[tuple[str, Value]] = []
        is_open = False
        for node in nodes:
            value = self.evaluate(node.value)
            if node.arg is not None:
                found.append((node.arg, value))
            elif isinstance(value, Collection) and value.kind == "dict":
                is_open = is_open or value.open
                for key, one in zip(value.keys, value.items, strict=True):
                    if isinstance(key, Known) and isinstance(key.value, str):
                        found.append((key.value, one))
            else:
                is_open = True
        return tuple(found), is_open

    def _call_one(
        self,
        callee: Value,
        args: tuple[Value, ...],
        keywords: Keywords,
        is_open: bool,
        location: Location,
        dropped: bool,
        node: ast.Call,
    ) -> Value:
        result = None
        if isinstance(callee, Call) and is_api(callee.callee, "functools.partial") and _is_of_library(callee):
            given = [name for name, _ in keywords]
            keywords = (*keywords, *(pair for pair in callee.keywords if pair[0] not in given))
            args, is_open = (*callee.args[1:], *args), is_open or callee.open
            callee = callee.args[0]
        if isinstance(callee, Defined) and isinstance(callee.of, ClassFacts):
            return self._instance(callee, callee.of, args, keywords, is_open, location, dropped)
        followable = self._followable(callee, args, keywords)
        if followable is not None:
            self.remember_base_arguments(callee, keywords, node)
            result = self.follow(*followable, is_open, location)
        elif isinstance(callee, Api) and callee.root == "builtins":
            special = self.known_function(callee.name, args, keywords, is_open, location)
            if special is not None:
                return special
        order = self.next_order()
        call = Call(location, callee, args, keywords, self.context, order, is_open, dropped, result)
        self.events.calls.append(call)
        if followable is None:
            if isinstance(callee, Attribute):
                special = self.known_method(callee, call, node)
                if special is not None:
                    return special
            self._let_escape(callee, call)
        return call if result is None else result

    def _instance(
        self,
        callee: Defined,
        own: ClassFacts,
        args: tuple[Value, ...],
        keywords: Keywords,
        is_open: bool,
        location: Location,
        dropped: bool,
    ) -> Value:
        order = self.next_order()
        call = Call(location, callee, args, keywords, self.context, order, is_open, dropped)
        self.events.calls.append(call)
        if self.context.reached:
            self._instantiated.add(id(own))
        initializer = own.find_method("__init__")
        closure = self.closures.get(id(initializer)) if initializer else None
        if closure is not None:
            self.follow(closure, (call, *args), keywords, is_open, location)
        elif not is_open:  # a dataclass or a named tuple: fields in the order of the class body
            names = [name for name in own.attributes if not name.startswith("_")]
            fields = dict(zip(names, args, strict=False)) | {name: value for name, value in keywords if name in names}
            self.attributes[id(call)] = self.changes.created(fields)
        self._let_escape(callee, call)
        return call

    def _followable(
        self, callee: Value, args: tuple[Value, ...], keywords: Keywords
    ) -> tuple[Closure, tuple[Value, ...], Keywords] | None:
        """The function of the user's own that is really called, with its arguments: bound methods, what
        tf.function or functools.partial wrap, strategy.run(function, args=…)."""
        if isinstance(callee, Defined) and isinstance(callee.of, FunctionFacts):
            closure = self.closures.get(id(callee.of))
            bound = () if callee.bound is None else (callee.bound,)
            return None if closure is None else (closure, (*bound, *args), keywords)
        if isinstance(callee, Attribute) and callee.name in _RUNS and args:
            given = dict(keywords).get("args", args[1] if len(args) > 1 else None)
            if isinstance(args[0], Defined) and isinstance(given, Collection) and not given.open:
                named = dict(keywords).get("kwargs")
                return None if named is not None else self._followable(args[0], given.items, ())
        own = callee.callee if isinstance(callee, Call) and isinstance(callee.callee, Defined) else None
        if own is not None and isinstance(own.of, ClassFacts) and own.of.kind is None:
            method = own.of.find_method("__call__")
            closure = self.closures.get(id(method)) if method else None
            return None if closure is None else (closure, (callee, *args), keywords)
        if isinstance(callee, Call) and callee.args:
            maker = callee.callee.callee if isinstance(callee.callee, Call) else callee.callee
            if isinstance(maker, Api) and maker.is_(*TRANSPARENT):
                return self._followable(callee.args[0], args, keywords)
            if isinstance(maker, Api) and maker.name == "functools.partial":
                return self._followable(callee.args[0], (*callee.args[1:], *args), (*callee.keywords, *keywords))
        return None

    def follow(
        self, closure: Closure, args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location
    ) -> Value | None:
        """Walk a function's body with these arguments. None where that gives no value: it is too deep,
        recursive, a generator, or called too often."""
        if (
            len(self.stack) >= (DEEPEST_CALL if self.context.reached else DEEPEST_ALONE)
            or closure in self.stack
            or self.visits[id(closure)] >= (MOST_VISITS if self.context.reached else MOST_VISITS_ALONE)
            or (closure.is_plain and self.spent[id(closure)] > MOST_PLAIN)
            or self.followed > MOST_FOLLOWED
            or not closure.is_followable
        ):
            return None
        names = self._bound_names(closure, args, keywords, is_open)
        context = self.context
        self.change_context(function=closure.facts, owner=closure.facts.owner, callers=(*context.callers, location))
        returned = self._walk(closure, names)
        self.context = context
        if closure.is_generator:
            return None
        return joined(returned) if returned else Known(location, None)

    def walk_alone(self, closure: Closure) -> None:
        """Walk a function that nobody calls, or that a library will call: its parameters are `Parameter`s."""
        context = self.context
        self.change_context(function=closure.facts, owner=closure.facts.owner)
        self._walk(closure, self._bound_names(closure, self._itself(closure), (), None))
        self.context = context

    def _walk(self, closure: Closure, names: dict[str, Value]) -> list[Value]:
        outer = self.scope, self.frame, self.module
        named, followed = self.frameworks_named, self.followed
        self.walked.add(id(closure))
        self.visits[id(closure)] += 1
        self.stack.append(closure)
        self.scope, self.frame, self.module = (
            Scope(closure.scope, names=names),
            Frame(closure.facts),
            closure.module,
        )
        self.walk_body(closure)
        returned = self.frame.returns
        self.scope, self.frame, self.module = outer
        self.stack.pop()
        self.spent[id(closure)] += self.followed - followed
        closure.is_plain = self.frameworks_named == named
        return returned

    def _itself(self, closure: Closure) -> tuple[Value, ...]:
        """`self` of a method, `cls` of a class method."""
        owner, facts = closure.facts.owner, closure.facts
        if owner is None or closure.is_static or not facts.parameters:
            return ()
        if closure.is_classmethod or facts.name == "__new__":
            return (Defined(owner.location, owner),)
        return (Instance(owner.location, owner),)

    def _bound_names(
        self, closure: Closure, args: tuple[Value, ...], keywords: Keywords, is_open: bool | None
    ) -> dict[str, Value]:
        """Parameters by name. `is_open` None: nobody knows the arguments behind `args`."""
        arguments, given = closure.node.args, dict(keywords)
        positional = [*arguments.posonlyargs, *arguments.args]
        names: dict[str, Value] = {}
        for index, node in enumerate((*positional, *arguments.kwonlyargs)):
            name, default = node.arg, closure.defaults.get(node.arg)
            is_positional = index < len(positional)
            if is_positional and index < len(args):
                names[name] = args[index]
            elif name in given:
                names[name] = given.pop(name)
            elif is_open is False and default is not None:
                names[name] = default
            else:
                position = index if is_positional else -1
                names[name] = Parameter(closure.module.source.location(node), name, position, closure.facts, default)
        if arguments.vararg is not None:
            node = arguments.vararg
            place = closure.module.source.location(node)
            if is_open is None:
                names[node.arg] = Parameter(place, node.arg, -1, closure.facts)
            else:
                names[node.arg] = Collection(place, "tuple", args[len(positional) :], (), is_open)
        if arguments.kwarg is not None:
            node = arguments.kwarg
            place = closure.module.source.location(node)
            if is_open is None:
                names[node.arg] = Parameter(place, node.arg, -1, closure.facts)
            else:
                keys = tuple(Known(place, name) for name in given)
                names[node.arg] = Collection(place, "dict", tuple(given.values()), keys, is_open)
        return names

    def _let_escape(self, callee: Value, call: Call) -> None:
        """Functions that a library is handed (`compile(loss=f)`, `dataset.map(f)`) are called by it some
        time."""
        if isinstance(callee, Api) and (callee.is_(*TRANSPARENT) or callee.name == "functools.partial"):
            return
        for argument in (*call.args, *(value for _, value in call.keywords)):
            if not isinstance(argument, (Defined, Collection, Either)):
                continue
            for one in options(argument):
                for value in one.items if isinstance(one, Collection) else (one,):
                    closure = self.closures.get(id(value.of)) if isinstance(value, Defined) else None
                    if closure is not None and id(closure) not in self.walked and len(self.stack) < DEEPEST_CALL:
                        self.walk_alone(closure)


def _is_of_library(partial: Call) -> bool:
    """Whether `functools.partial` was given a class, or a library's function. The user's own functions are followed."""
    of = partial.args[0] if partial.args else None
    return isinstance(of, Api) or (isinstance(of, Defined) and isinstance(of.of, ClassFacts))
