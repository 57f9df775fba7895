"""Assignment: names, attributes, items, and tuples of them."""

from __future__ import annotations

import ast

from mpdoctor.program.values import Collection, Item, Known, Unknown, Value, options
from mpdoctor.source.arithmetic import joined
from mpdoctor.source.definitions import Definitions


class Assignments(Definitions):
    def assign(self, target: ast.expr, value: Value, augmented: bool = False) -> None:
        if isinstance(target, ast.Name):
            if self.scope.parent is None and target.id in self.module.changed_globals:
                value = joined((value, Unknown(value.location)))
            self.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif isinstance(target, ast.Attribute):
            of = self.evaluate(target.value)
            self.record_write(of, target.attr, value, self.place(target), None, augmented)
            self.store_attribute(of, target.attr, value)
        elif isinstance(target, ast.Subscript):
            of, index = self.evaluate(target.value), self.evaluate(target.slice)
            self.record_write(of, "", value, self.place(target), index, augmented)
            self.remember_keyword(target.value, index, value)
            if isinstance(target.value, ast.Name) and isinstance(of, Collection):
                self.bind(target.value.id, self._with_item(of, index, value))

    def _with_item(self, of: Collection, index: Value, value: Value) -> Value:
        if of.kind == "dict" and isinstance(index, Known) and len(of.items) < 500:
            is_open = of.open or bool(self.context.loops)
            return Collection(of.location, "dict", (*of.items, value), (*of.keys, index), is_open)
        return Collection(of.location, of.kind, (), (), True)

    def _unpack(self, targets: list[ast.expr], value: Value) -> None:
        starred = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        for position, target in enumerate(targets):
            location = self.place(target)
            parts = []
            for one in options(value):
                fits = isinstance(one, Collection) and one.kind in ("list", "tuple") and not one.open
                if fits and starred is None and isinstance(one, Collection) and len(one.items) == len(targets):
                    parts.append(one.items[position])
                elif starred is None or position < starred:
                    parts.append(Item(location, one, Known(location, position)))
                else:
                    parts.append(Item(location, one, None))
            self.assign(target, joined(parts))
