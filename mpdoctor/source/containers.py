"""Lists, tuples, sets, dicts and comprehensions: what the program writes out, and what it takes from them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mpdoctor.facts.location import Location
from mpdoctor.program.values import Api, Call, Collection, Item, Known, Unknown, Value, options
from mpdoctor.source.arithmetic import joined
from mpdoctor.source.guards import asks_whether_it_works
from mpdoctor.source.scopes import Scope
from mpdoctor.source.walker import Walker

_PASSING_ON = ("builtins.reversed", "builtins.sorted", "builtins.iter", "tqdm.tqdm", "tqdm.auto.tqdm")


class Containers(Walker):
    def subscript(self, node: ast.Subscript) -> Value:
        of, index = self.evaluate(node.value), self.evaluate(node.slice)
        return joined(self.item(one, index, self.place(node)) for one in options(of))

    def item(self, of: Value, index: Value | None, location: Location) -> Value:
        """`of[index]`; with `index` None one element, nobody knows which."""
        if isinstance(of, Collection):
            if isinstance(index, Known):
                try:
                    entry = of.entry(index.value)
                except TypeError:  # a key that cannot be compared
                    entry = None
                return entry or (Unknown(location) if of.kind == "dict" else Item(location, of, index))
            if index is None and of.items and not of.open and of.kind != "dict":
                return joined(of.items)
            if index is None and of.kind == "dict" and of.keys and not of.open:
                return joined(of.keys)
        return Item(location, of, index)

    def sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        items, is_open = self.spread(node.elts)
        return Collection(self.place(node), type(node).__name__.lower(), items, (), is_open)

    def spread(self, nodes: Sequence[ast.expr]) -> tuple[tuple[Value, ...], bool]:
        """Elements or arguments; `*rest` is spread out where its elements are known."""
        items: list[Value] = []
        is_open = False
        for node in nodes:
            if not isinstance(node, ast.Starred):
                items.append(self.evaluate(node))
                continue
            rest = self.evaluate(node.value)
            if isinstance(rest, Collection) and rest.kind in ("list", "tuple"):
                items.extend(rest.items)
                is_open = is_open or rest.open
            else:
                is_open = True
        return tuple(items), is_open

    def dictionary(self, node: ast.Dict) -> Value:
        keys: list[Value] = []
        items: list[Value] = []
        is_open = False
        for key_node, item_node in zip(node.keys, node.values, strict=True):
            item = self.evaluate(item_node) if key_node is None else None
            if key_node is not None:
                keys.append(self.evaluate(key_node))
                items.append(self.evaluate(item_node))
            elif isinstance(item, Collection) and item.kind == "dict":
                keys.extend(item.keys)
                items.extend(item.items)
                is_open = is_open or item.open
            else:
                is_open = True
        return Collection(self.place(node), "dict", tuple(items), tuple(keys), is_open)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        before, outer = self.scope, self.context
        self.scope = Scope(before.enclosing_function if before.is_class else before)
        self.change_context(loops=outer.loops + 1)
        for generator in node.generators:
            iterable = self.evaluate(generator.iter)
            self.assign(generator.target, self.element(iterable, self.place(generator.target)))
            for condition in generator.ifs:
                if asks_whether_it_works(condition, self.evaluate(condition)):
                    self.change_context(guarded=True)
        if isinstance(node, ast.DictComp):
            keys: tuple[Value, ...] = (self.evaluate(node.key),)
            items: tuple[Value, ...] = (self.evaluate(node.value),)
            kind = "dict"
        else:
            keys, items = (), (self.evaluate(node.elt),)
            kind = "set" if isinstance(node, ast.SetComp) else "list"
        self.scope, self.context = before, outer
        return Collection(self.place(node), kind, items, keys, True)

    def element(self, iterable: Value, location: Location) -> Value:
        """What a `for` over this is given each time."""
        return joined(self._element(one, location) for one in options(iterable))

    def _element(self, iterable: Value, location: Location) -> Value:
        if isinstance(iterable, Call) and isinstance(iterable.callee, Api) and iterable.args:
            name = iterable.callee.name
            if name == "builtins.enumerate":
                pair = (Unknown(location), self.element(iterable.args[0], location))
                return Collection(location, "tuple", pair)
            if name == "builtins.zip" and not iterable.open:
                together = tuple(self.element(one, location) for one in iterable.args)
                return Collection(location, "tuple", together)
            if name in (
                "builtins.reversed",
                "builtins.sorted",
                "builtins.iter",
                "tqdm.tqdm",
                "tqdm.auto.tqdm",
            ):
                return self.element(iterable.args[0], location)
        return self.item(iterable, None, location)
