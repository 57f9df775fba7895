"""Calls of Python's own that the walk understands: super, getattr, dict, list.append, dict.get …"""

from __future__ import annotations

import ast

from mpdoctor.facts.location import Location
from mpdoctor.program.values import (
    MISSING,
    Api,
    Attribute,
    Call,
    ClassFacts,
    Collection,
    Defined,
    FunctionFacts,
    Instance,
    Known,
    Unknown,
    Value,
    known,
    options,
)
from mpdoctor.source.arithmetic import constant_from_call, joined
from mpdoctor.source.objects import Objects, Super

Keywords = tuple[tuple[str, Value], ...]


class KnownCalls(Objects):
    def known_function(
        self, name: str, args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location
    ) -> Value | None:
        """What a function of Python itself gives; None for those that need no knowledge."""
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

    def remember_base_arguments(self, callee: Value, keywords: Keywords, node: ast.Call) -> None:
        """`super().__init__(dtype=…)` where the class behind it is the user's own as well."""
        inside, called = self.frame.function, callee.of if isinstance(callee, Defined) else None
        if not isinstance(called, FunctionFacts) or inside is None or not called.name == inside.name == "__init__":
            return
        if called.owner is not None and inside.owner is not None and called.owner is not inside.owner:
            self._remember(inside.owner, keywords, node)

    def known_method(self, callee: Attribute, call: Call, node: ast.Call) -> Value | None:
        """Methods of lists and dicts that the program writes out, and super().__init__ of a library's
        class."""
        of = callee.of
        if callee.name == "setdefault" and len(call.args) == 2 and isinstance(node.func, ast.Attribute):
            self.remember_keyword(node.func.value, call.args[0], call.args[1])
        if isinstance(of, Super) and callee.name == "__init__":
            self._remember(of.behind, call.keywords, node)
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
            return Collection(call.location, "list", of.items if callee.name == "values" else of.keys, (), of.open)
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

    def remember_keyword(self, holder: ast.expr, key: Value, value: Value) -> None:
        """`kwargs["dtype"] = …`, where the function takes `**kwargs`."""
        function, name = self.frame.function, known(key)
        if function is None or not isinstance(holder, ast.Name) or not isinstance(name, str):
            return
        if function.parameters[-1:] == ("**" + holder.id,):
            self.frame.keywords_set[name] = value

    def _mutate(self, of: Collection, method: str, call: Call, node: ast.Call) -> None:
        """A list or dict that is changed in place becomes a new value under the same name."""
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_certain = not self.context.loops
        added = call.args[:1]
        if method == "append" and added and of.kind == "list":
            new = Collection(of.location, of.kind, (*of.items, *added), (), of.open or not is_certain)
        elif method == "extend" and added and isinstance(added[0], Collection) and of.kind == "list":
            rest = added[0]
            new = Collection(of.location, of.kind, (*of.items, *rest.items), (), of.open or rest.open or not is_certain)
        else:
            new = Collection(of.location, of.kind, of.items, of.keys, True)
        if len(new.items) > 500:
            new = Collection(of.location, of.kind, of.items, of.keys, True)
        if isinstance(receiver, ast.Name):
            self.bind(receiver.id, new)
        elif isinstance(receiver, ast.Attribute):
            for one in options(self._attribute_silently(receiver)):
                self._replace_attribute(one, receiver.attr, new)

    def _attribute_silently(self, node: ast.Attribute) -> Value:
        inner = node.value
        return (self.scope.find(inner.id) or Unknown()) if isinstance(inner, ast.Name) else Unknown()

    def _replace_attribute(self, of: Value, name: str, value: Value) -> None:
        mine = self.attributes.get(id(of))
        if mine is not None and name in mine:
            self.changes.set(mine, name, value)
        if isinstance(of, Instance) and name in of.of.attributes:
            self.changes.set(of.of.attributes, name, value)

    def _remember(self, own: ClassFacts, keywords: Keywords, node: ast.Call) -> None:
        """Only what is written out, here or before (`kwargs["dtype"] = …`): what else `**kwargs` hands on differs from
        one instance to the next."""
        written = {keyword.arg for keyword in node.keywords}
        handed_on = any(keyword.arg is None for keyword in node.keywords)
        own_keywords = self.frame.keywords_set if handed_on else {}
        for name, value in {**dict(keywords), **own_keywords}.items():
            if name in written or name in own_keywords:
                old = own.base_arguments.get(name)
                self.changes.set(own.base_arguments, name, value if old is None else joined((old, value)))
