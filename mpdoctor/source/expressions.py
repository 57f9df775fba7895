"""Expressions → values, and the events on the way."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mpdoctor.facts.location import Location
from mpdoctor.program.values import (
    MISSING,
    Api,
    Branch,
    Known,
    Operation,
    Unknown,
    Value,
    known,
    options,
)
from mpdoctor.source.arithmetic import (
    OPERATORS,
    constant_from_name,
    folded_binary,
    folded_unary,
    is_told,
    joined,
)
from mpdoctor.source.containers import Containers
from mpdoctor.source.guards import asks_whether_it_works, may_prune
from mpdoctor.source.names import api_from_name, is_builtin
from mpdoctor.source.scopes import Module

DEEPEST = 250  # nested expressions and statements; Python's own parser stops not far beyond


class Expressions(Containers):
    """Walks expressions. What calls and attributes mean is decided in the classes below this one."""

    def __init__(self) -> None:
        super().__init__()
        self._walkers: dict[type[ast.AST], Callable[..., Value]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Call: self.call,
            ast.BinOp: self._binary,
            ast.UnaryOp: self._unary,
            ast.Compare: self._compare,
            ast.BoolOp: self._boolean,
            ast.IfExp: self._conditional,
            ast.Subscript: self.subscript,
            ast.Tuple: self.sequence,
            ast.List: self.sequence,
            ast.Set: self.sequence,
            ast.Dict: self.dictionary,
            ast.ListComp: self.comprehension,
            ast.SetComp: self.comprehension,
            ast.GeneratorExp: self.comprehension,
            ast.DictComp: self.comprehension,
            ast.NamedExpr: self._named,
            ast.Lambda: self.function_from_lambda,
            ast.JoinedStr: self._text,
            ast.FormattedValue: self._formatted,
            ast.Starred: self._starred,
            ast.Await: self._inner,
            ast.Yield: self._yielded,
            ast.YieldFrom: self._yielded,
            ast.Slice: self._slice,
        }

    def evaluate(self, node: ast.expr) -> Value:
        walker = self._walkers.get(type(node))
        if walker is None or self.depth > DEEPEST:
            return Unknown(self.place(node))
        self.depth += 1
        value = walker(node)
        self.depth -= 1
        return value

    def api(self, spelled: str, location: Location) -> Value:
        constant = constant_from_name(spelled)
        return api_from_name(spelled, location) if constant is MISSING else Known(location, constant)

    def _constant(self, node: ast.Constant) -> Value:
        value = getattr(node, "known", None)
        if value is None:
            place, known = self.place(node), node.value
            value = Known(place, known) if is_told(known) else Unknown(place)
            node.known = value  # type: ignore[attr-defined]
        assert isinstance(value, Value)
        return value

    def _name(self, node: ast.Name) -> Value:
        value = self.scope.find(node.id) or self._unbound(node.id, node)
        if id(value) in self.imported:
            self._record_uses(value, self.place(node))
        return value

    def find(self, name: str, node: ast.expr) -> Value:
        return self.scope.find(name) or self._unbound(name, node)

    def _unbound(self, name: str, node: ast.expr) -> Value:
        if is_builtin(name):
            return Api(self.place(node), "builtins." + name, "builtins", "builtins." + name)
        return self.from_star_import(name, self.place(node))

    def from_star_import(self, name: str, location: Location) -> Value:
        """`from keras.layers import *` gives every name that nothing else explains; two of them leave it
        open."""
        stars = self.module.stars
        if len(stars) != 1 or name.startswith("_"):
            return Unknown(location)
        value = self.api(f"{stars[0]}.{name}", location)
        self.changes.set(self.module.scope.names, name, value)
        self.imported[id(value)] = value
        return value

    def _record_uses(self, value: Value, location: Location) -> None:
        for one in options(value):
            if isinstance(one, Api):
                self.record_use(one, location)

    def _attribute(self, node: ast.Attribute, is_called: bool = False) -> Value:
        names, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            root = self.find(inner.id, inner)
            if isinstance(root, Api):
                location = self.place(node)
                value = self.api(".".join((root.spelled, *reversed(names))), location)
                if isinstance(value, Api):
                    self.record_use(value, location, dotted=len(names))
                return value
        of = self._attribute(node.value) if isinstance(node.value, ast.Attribute) else self._inside(node.value)
        return self.read_attribute(of, node, is_called)

    def _inside(self, node: ast.expr) -> Value:
        """The start of a dotted name, which is a use of its own only where nothing of a library follows."""
        return self.find(node.id, node) if isinstance(node, ast.Name) else self.evaluate(node)

    def read_attribute(self, of: Value, node: ast.Attribute, is_called: bool) -> Value:
        location = self.place(node)
        found, others = [], []
        for one in options(of):
            value = self.attribute_of(one, node.attr, location)
            found.append(value)
            if isinstance(one, Api) and isinstance(value, Api):
                self.record_use(value, location, dotted=1)
            elif not isinstance(one, Module):
                others.append(one)
        if others:
            read_from = of if len(others) == len(found) else joined(others)
            self.record_read(read_from, node.attr, location, self.module.source.attribute_name(node), is_called)
        return joined(found)

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        return self.operation(node, OPERATORS[type(node.op)], left, right)

    def operation(
        self, node: ast.expr | ast.stmt, symbol: str, left: Value, right: Value, augmented: bool = False
    ) -> Value:
        folded = folded_binary(symbol, left, right)
        if isinstance(folded, Known):
            return Known(self.place(node), folded.value)
        return folded or self.record_operation(self.place(node), symbol, (left, right), augmented)

    def _unary(self, node: ast.UnaryOp) -> Value:
        symbol, operand = OPERATORS[type(node.op)], self.evaluate(node.operand)
        folded = folded_unary(symbol, operand)
        if isinstance(folded, Known):
            return Known(self.place(node), folded.value)
        return self.record_operation(self.place(node), symbol, (operand,))

    def _compare(self, node: ast.Compare) -> Value:
        left, found = self.evaluate(node.left), []
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator)
            found.append(self.operation(node, OPERATORS[type(operator)], left, right))
            left = right
        if len(found) == 1:
            return found[0]
        return Operation(self.place(node), "and", tuple(found), self.context, self.order)

    def _boolean(self, node: ast.BoolOp) -> Value:
        """`a and b` is one of its operands; behind a guard (`hasattr(x, "lr") and x.lr`) the rest is
        guarded."""
        symbol, values = OPERATORS[type(node.op)], []
        before = self.context
        for operand in node.values:
            value = self.evaluate(operand)
            if isinstance(value, Known) and bool(value.value) == (symbol == "and") and operand is not node.values[-1]:
                continue
            values.append(value)
            if isinstance(value, Known):
                break
            if asks_whether_it_works(operand, value) and not self.context.guarded:
                self.change_context(guarded=True)
        self.context = before
        if len(values) > 1:
            self.record_operation(self.place(node), symbol, tuple(values))
        return joined(values)

    def _conditional(self, node: ast.IfExp) -> Value:
        test = self.evaluate(node.test)
        certain = known(test) if may_prune(node.test) else MISSING
        guarded = self.context.guarded or asks_whether_it_works(node.test, test)
        found = []
        for taken, arm in ((True, node.body), (False, node.orelse)):
            if certain is MISSING or bool(certain) is taken:
                before = self.change_context(
                    guarded=guarded, branches=(*self.context.branches, Branch(id(node), taken, test))
                )
                found.append(self.evaluate(arm))
                self.context = before
        return joined(found)

    def _named(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def _text(self, node: ast.JoinedStr) -> Value:
        parts = [self.evaluate(part) for part in node.values]
        texts = [part.value for part in parts if isinstance(part, Known) and isinstance(part.value, str)]
        if len(texts) == len(parts):
            return Known(self.place(node), "".join(texts))
        return Operation(self.place(node), "f-string", tuple(parts), self.context, self.order)

    def _formatted(self, node: ast.FormattedValue) -> Value:
        value = self.evaluate(node.value)
        is_plain = node.format_spec is None and node.conversion == -1
        if is_plain and isinstance(value, Known) and isinstance(value.value, (str, int)):
            return Known(value.location, str(value.value)[:200])
        return value if not isinstance(value, Known) else Unknown(value.location)

    def _starred(self, node: ast.Starred) -> Value:
        return self.evaluate(node.value)

    def _inner(self, node: ast.Await) -> Value:
        return self.evaluate(node.value)

    def _yielded(self, node: ast.Yield | ast.YieldFrom) -> Value:
        if node.value is not None:
            self.evaluate(node.value)
        return Unknown(self.place(node))

    def _slice(self, node: ast.Slice) -> Value:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.evaluate(part)
        return Unknown(self.place(node))
