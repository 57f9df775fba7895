"""Calls: what they give, and the user's own functions followed with the arguments that they are given."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections import Counter

from mpdoctor.facts.location import Location
from mpdoctor.facts.values import (
    MISSING,
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
    Unknown,
    Value,
    known,
    options,
)
from mpdoctor.source.arithmetic import constant_from_call, joined
from mpdoctor.source.objects import Objects, Super
from mpdoctor.source.scopes import Closure, Frame, Scope

DEEPEST_CALL = 6  # functions followed into one another
MOST_VISITS = 64  # times that one function is followed
MOST_FOLLOWED = 40_000  # statements walked inside followed functions, all together

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
Keywords = tuple[tuple[str, Value], ...]


class Following(Objects):
    def __init__(self) -> None:
        super().__init__()
        self.stack: list[Closure] = []
        self.followed = 0
        self.visits: Counter[int] = Counter()  # of closures, by id
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
        results = [
            self._call_one(one, args, keywords, is_open, location, dropped, node) for one in options(callee)
        ]
        return joined(results)

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
        if isinstance(callee, Defined) and isinstance(callee.of, ClassFacts):
            return self._instance(callee, callee.of, args, keywords, is_open, location, dropped)
        followable = self._followable(callee, args, keywords)
        if followable is not None:
            result = self.follow(*followable, is_open, location)
        elif isinstance(callee, Api) and callee.root == "builtins":
            special = self._builtin(callee.name, args, keywords, is_open, location)
            if special is not None:
                return special
        order = self.next_order()
        call = Call(location, callee, args, keywords, self.context, order, is_open, dropped, result)
        self.events.calls.append(call)
        if followable is None:
            if isinstance(callee, Attribute):
                special = self._method_call(callee, call, node)
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
            fields = dict(zip(names, args, strict=False)) | {
                name: value for name, value in keywords if name in names
            }
            self.attributes[id(call)] = fields
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
                return self._followable(
                    callee.args[0], (*callee.args[1:], *args), (*callee.keywords, *keywords)
                )
        return None

    def follow(
        self, closure: Closure, args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location
    ) -> Value | None:
        """Walk a function's body with these arguments. None where that gives no value: it is too deep,
        recursive, a generator, or called too often."""
        if (
            len(self.stack) >= DEEPEST_CALL
            or closure in self.stack
            or self.visits[id(closure)] >= MOST_VISITS
            or self.followed > MOST_FOLLOWED
            or not closure.is_followable
        ):
            return None
        names = self._bound_names(closure, args, keywords, is_open)
        context = self.context
        self.change_context(
            function=closure.facts, owner=closure.facts.owner, callers=(*context.callers, location)
        )
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
        closure.is_followed = True
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
                names[name] = Parameter(
                    closure.module.source.location(node), name, position, closure.facts, default
                )
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
                    if closure is not None and not closure.is_followed and len(self.stack) < DEEPEST_CALL:
                        self.walk_alone(closure)

    def _builtin(
        self, name: str, args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location
    ) -> Value | None:
        if name == "builtins.super":
            return self._super(args, location)
        constant = constant_from_call(name, args)
        if constant is not MISSING:
            return Known(location, constant)
        attribute = known(args[1]) if len(args) > 1 else MISSING
        if name == "builtins.getattr" and isinstance(attribute, str):
            if len(args) == 2 and not is_open:  # with a default the program is prepared, and reads nothing
                self.record_read(args[0], attribute, location, location, False)
            found = [self.attribute_of(one, attribute, location) for one in options(args[0])]
            return joined((*found, *args[2:3]))
        if name == "builtins.setattr" and isinstance(attribute, str) and len(args) == 3:
            self.record_write(args[0], attribute, args[2], location, None, False)
            self.store_attribute(args[0], attribute, args[2])
            return Known(location, None)
        if name == "builtins.dict" and not args:
            keys = tuple(Known(location, key) for key, _ in keywords)
            return Collection(location, "dict", tuple(value for _, value in keywords), keys, is_open)
        if name in ("builtins.list", "builtins.tuple") and len(args) <= 1 and not is_open:
            kind, one = name.partition(".")[2], args[0] if args else None
            if one is None:
                return Collection(location, kind)
            if isinstance(one, Collection) and one.kind != "dict":
                return Collection(location, kind, one.items, (), one.open)
        return None

    def _super(self, args: tuple[Value, ...], location: Location) -> Value | None:
        function = self.frame.function
        while function is not None and function.owner is None:
            function = function.enclosing
        if function is None or function.owner is None or not function.parameters:
            return None
        behind = args[0].of if args and isinstance(args[0], Defined) else function.owner
        instance = args[1] if len(args) > 1 else self.scope.find(function.parameters[0])
        if not isinstance(behind, ClassFacts) or instance is None:
            return None
        callee = Api(location, "builtins.super", "builtins", "builtins.super")
        return Super(location, callee, args, (), self.context, self.order, instance=instance, behind=behind)

    def _method_call(self, callee: Attribute, call: Call, node: ast.Call) -> Value | None:
        """Methods of lists and dicts that the program writes out, and super().__init__ of a library's
        class."""
        of = callee.of
        if isinstance(of, Super) and callee.name == "__init__":
            written = {keyword.arg for keyword in node.keywords}
            for name, value in call.keywords:
                if name in written:
                    old = of.behind.base_arguments.get(name)
                    of.behind.base_arguments[name] = value if old is None else joined((old, value))
            return None
        if not isinstance(of, Collection):
            return None
        if callee.name in (
            "append",
            "extend",
            "insert",
            "add",
            "update",
            "pop",
            "remove",
            "clear",
            "setdefault",
        ):
            self._mutate(of, callee.name, call, node)
            return None
        if of.kind != "dict":
            return None
        if callee.name == "get" and call.args:
            found = self.item(of, call.args[0], call.location)
            default = call.argument(1) or Known(call.location, None)
            certain = isinstance(call.args[0], Known) and not of.open
            if isinstance(found, Unknown):
                return default if certain else None
            return found if certain else joined((found, default))
        if callee.name in ("values", "keys"):
            return Collection(
                call.location, "list", of.items if callee.name == "values" else of.keys, (), of.open
            )
        if callee.name == "items":
            pairs = zip(of.keys, of.items, strict=True)
            return Collection(
                call.location,
                "list",
                tuple(Collection(call.location, "tuple", pair) for pair in pairs),
                (),
                of.open,
            )
        return None

    def _mutate(self, of: Collection, method: str, call: Call, node: ast.Call) -> None:
        """A list or dict that is changed in place becomes a new value under the same name."""
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_certain = not self.context.loops
        added = call.args[:1]
        if method == "append" and added and of.kind == "list":
            new = Collection(of.location, of.kind, (*of.items, *added), (), of.open or not is_certain)
        elif method == "extend" and added and isinstance(added[0], Collection) and of.kind == "list":
            rest = added[0]
            new = Collection(
                of.location, of.kind, (*of.items, *rest.items), (), of.open or rest.open or not is_certain
            )
        else:
            new = Collection(of.location, of.kind, of.items, of.keys, True)
        if len(new.items) > 500:
            new = Collection(of.location, of.kind, of.items, of.keys, True)
        if isinstance(receiver, ast.Name):
            self.scope.bind(receiver.id, new)
        elif isinstance(receiver, ast.Attribute):
            for one in options(self._attribute_silently(receiver)):
                self._replace_attribute(one, receiver.attr, new)

    def _attribute_silently(self, node: ast.Attribute) -> Value:
        inner = node.value
        return (self.scope.find(inner.id) or Unknown()) if isinstance(inner, ast.Name) else Unknown()

    def _replace_attribute(self, of: Value, name: str, value: Value) -> None:
        mine = self.attributes.get(id(of))
        if mine is not None and name in mine:
            mine[name] = value
        if isinstance(of, Instance) and name in of.of.attributes:
            of.of.attributes[name] = value
