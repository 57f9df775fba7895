"""Where the walk is at the moment, and what its layers owe one another."""

from __future__ import annotations

import ast
from abc import abstractmethod

from mpdoctor.facts.location import Location
from mpdoctor.program.values import Value
from mpdoctor.source.arithmetic import joined
from mpdoctor.source.changes import Changes
from mpdoctor.source.reading import Source
from mpdoctor.source.recording import Recorder
from mpdoctor.source.scopes import Frame, Module, Scope


class Walker(Recorder):
    def __init__(self) -> None:
        super().__init__()
        self.scope = Scope()
        self.frame = Frame()
        self.module = Module(source=Source("", "", ast.Module([], [])))
        self.depth = 0
        self.imported: dict[int, Value] = {}  # by id, the values that import statements made
        self.changes = Changes()

    def bind(self, name: str, value: Value) -> None:
        """Outside the walked paths of this scope, a `global` may or may not have been assigned: both stay possible."""
        elsewhere = self.scope.redirected.get(name)
        if elsewhere is None:
            self.scope.names[name] = value
        else:
            self.changes.set(elsewhere.names, name, joined((elsewhere.names.get(name), value)))

    def place(self, node: ast.expr | ast.stmt) -> Location:
        return getattr(node, "place", None) or self.module.source.location(node)

    @abstractmethod
    def evaluate(self, node: ast.expr) -> Value: ...

    @abstractmethod
    def call(self, node: ast.Call, dropped: bool = False) -> Value: ...

    @abstractmethod
    def attribute_of(self, of: Value, name: str, location: Location) -> Value: ...

    @abstractmethod
    def function_from_lambda(self, node: ast.Lambda) -> Value: ...

    @abstractmethod
    def assign(self, target: ast.expr, value: Value) -> None: ...
