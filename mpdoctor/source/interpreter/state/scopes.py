"""Scopes, frames, closures and modules: which name holds which value at one point of a program."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from pathlib import Path

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.breakdown import Breakdown
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.policy_settings import sets_policy
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts
from mpdoctor.program.values import Value
from mpdoctor.source.fixed_attributes import AttributesSet
from mpdoctor.source.interpreter.state.events import Events
from mpdoctor.source.joining import joined_arms
from mpdoctor.source.reading import Source
from mpdoctor.source.syntax_nodes import attributes_counted

# `self.steps += 1`, `self.steps = self.steps + 1` or `self.is_warm = True` may stand here
_MAY_COUNT = re.compile(r"\.(\w+)\s*(?:[-+]=|(?::[^=\n]+)?=\s*(?:True\b|False\b|[^=\n]*\.\1\s*[-+]))")
Keywords = tuple[tuple[str, Value], ...]  # of a call: names and values


@dataclass(frozen=False, eq=False, repr=False)
class Scope:
    """The names of a module, a function or a class body. `redirected` holds `global` and `nonlocal` names."""

    parent: Scope | None = None
    is_class: bool = False
    names: dict[str, Value] = field(default_factory=dict)
    redirected: dict[str, Scope] = field(default_factory=dict)

    def find(self, name: str) -> Value | None:
        """The value that Python's lookup finds for a name: class bodies are only seen from within."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.redirected:
                return scope.redirected[name].names.get(name)
            if name in scope.names and (scope is self or not scope.is_class):
                return scope.names[name]
            scope = scope.parent
        return None

    def forget(self, name: str) -> None:
        self.names.pop(name, None)

    @property
    def module(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    @property
    def enclosing_function(self) -> Scope:
        """The scope in which functions defined here look names up: classes are skipped."""
        scope = self
        while scope.is_class and scope.parent is not None:
            scope = scope.parent
        return scope


def merged_names(paths: list[dict[str, Value]]) -> dict[str, Value]:
    """The names after several paths have met. A name that only some paths bind keeps the values of these."""
    first, *others = paths
    result = dict(first)
    for other in others:
        for name, value in other.items():
            known = result.get(name)
            if known is not value:
                result[name] = value if known is None else joined_arms([known, value])
    return result


@dataclass(frozen=True, eq=False, repr=False, slots=False)
class Module(Value):
    """A first-party module, as a value that the program may hold. Rules never meet its inside.

    name, package
        Dotted, as Python would have them. `root` is the directory of the script that brought it in,
        `shown_root` that directory as shown to the user, `top` the directory above the script's outermost
        package.
    events, later
        The events of its own top level, and those of its functions that nobody called.
    imports
        By id of the module.
    facts_of_nodes
        Of its functions and classes, by id of the node in `source`.
    changed_globals
        Names that some function of it assigns by `global`: the module never holds one value for certain.
    libraries_held
        See `SourceFacts`.
    main_blocks
        Bodies of `if __name__ == "__main__"` that were left out because the module was imported. `main_runs`: the
        runs (`Context.run`) in which they were executed all the same.
    settings_read
        Where its top level was walked by itself: see `Walk.settings_read`.
    """

    name: str = ""
    package: str = ""
    root: Path | None = None
    shown_root: Path = Path()
    top: Path | None = None
    source: Source = field(kw_only=True)
    scope: Scope = field(default_factory=Scope)
    events: Events = field(default_factory=Events)
    later: Events = field(default_factory=Events)
    closures: list[Closure] = field(default_factory=list)
    functions: list[FunctionFacts] = field(default_factory=list)
    classes: list[ClassFacts] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)
    imports: dict[int, Import] = field(default_factory=dict)
    facts_of_nodes: dict[int, FunctionFacts | ClassFacts] = field(default_factory=dict)
    changed_globals: set[str] = field(default_factory=set)
    libraries_held: set[str] = field(default_factory=set)
    main_blocks: list[list[ast.stmt]] = field(default_factory=list)
    main_runs: set[int] = field(default_factory=set)
    incomplete: list[bool] = field(default_factory=list)
    breakdowns: list[Breakdown] = field(default_factory=list)
    settings_read: dict[str, str] = field(default_factory=dict)

    @cached_property
    def policy_calls(self) -> list[Call]:
        """The calls by which the module's own top level sets the global policy. Only complete after the module was
        walked."""
        return [call for call in self.events.calls if sets_policy(call)]

    @cached_property
    def counted_attributes(self) -> frozenset[str]:
        """See `attributes_counted`."""
        return attributes_counted(self.source.tree.body) if _MAY_COUNT.search(self.source.text) else frozenset()

    @cached_property
    def attributes_set(self) -> AttributesSet:
        return AttributesSet(self.source.tree, self.source.text)


@dataclass(frozen=False, eq=False, repr=False)
class Written:
    """An attribute that a function was the last to write, on a path without branches. `before`: what it held from
    others."""

    frame: Frame
    before: Value | None
    value: Value


@dataclass(frozen=True, eq=False, repr=False)
class Draft:
    """What a function made of a class's attribute when it gave one to an object: the value that the `others` have, and
    that with the object's own."""

    frame: Frame
    others: Value | None
    value: Value


@dataclass(frozen=False, eq=False, repr=False)
class Import:
    """The first import of another module of the program by a module."""

    module: Module
    context: Context
    order: int


@dataclass(frozen=False, eq=False, repr=False)
class Closure:
    """A function of the user's, ready to be inlined: its tree, and where it looks names up. `is_plain` is True if it
    was executed and named nothing of TensorFlow or Keras, `is_wrapped` if a decorator of the user's own put another
    function in its place, `is_wrapper` if it is such another function, `is_guarded` if it is defined behind a guard
    (see `Context.guarded`), without which there is no such function. `raises_where_missing`: see `Frame`. `stands_for`:
    the method in whose place a decorator has put it."""

    facts: FunctionFacts
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    module: Module
    defaults: dict[str, Value]
    is_generator: bool
    is_plain: bool = False
    is_static: bool = False
    is_classmethod: bool = False
    is_property: bool = False
    is_inlinable: bool = True
    is_wrapped: bool = False
    is_wrapper: bool = False
    is_guarded: bool = False
    raises_where_missing: bool = False
    stands_for: Closure | None = None

    def is_same(self, other: Closure) -> bool:
        """Whether both are one function: of one `def`, and of the same run of what is around it."""
        return self.facts is other.facts and self.scope is other.scope


@dataclass(frozen=False, eq=False, repr=False)
class Frame:
    """One function that is being executed. `returns` fills up, and so does `yields`, each with the number of loops
    around it; `exits` collects the names at each break and continue; `ends_program` tells whether the block that ended
    last did so by raising or exiting; `raises_where_missing` whether the function raises, whatever else it does, where
    a part of a library could not be imported; `never_returns` whether it ended by raising or exiting on every path;
    `left_at` is its last call of a function of the user's, if that one never returns; `keywords_set` holds
    what the function itself puts into its `**keywords`; `at_yield` runs where it yields: the body of a `with`, of which
    the function is the context manager; `entered` is the context in which it began; `names` are its own when it has
    ended; `caller` is what called it, where the program is seen to; `otherwise` holds the attributes that have another
    value in the arm in hand than this walk knows; `in_each_arm` the names of what is run in each arm of the guard in
    hand, and the context around that."""

    function: FunctionFacts | None = None
    entered: Context = field(default_factory=Context)
    returns: list[Value] = field(default_factory=list)
    exits: list[list[tuple[dict[str, Value], bool]]] = field(default_factory=list)
    yields: list[tuple[Value, int]] = field(default_factory=list)
    ends_program: bool = False
    raises_where_missing: bool = False
    never_returns: bool = False
    left_at: Location | None = None
    keywords_set: dict[str, Value] = field(default_factory=dict)
    at_yield: Callable[[Value], None] | None = None
    names: dict[str, Value] = field(default_factory=dict)
    caller: Frame | None = None
    otherwise: frozenset[str] = frozenset()
    in_each_arm: tuple[frozenset[str], Context] = (frozenset(), Context())

    def is_called_by(self, other: Frame) -> bool:
        """Whether the other frame has called this one, directly or through others."""
        caller = self.caller
        while caller is not None and caller is not other:
            caller = caller.caller
        return caller is not None


def imports_of(module: Module) -> list[tuple[Module, Import]]:
    """The first-party modules that it imports, also through others, each once; and its own import that leads there."""
    found: list[tuple[Module, Import]] = []
    paths, seen = {module.source.path}, set[int]()

    def add_imports_of(importer: Module, by: Import | None) -> None:
        if importer.imports.keys() <= seen:  # asked for each module that each file reaches
            return
        for number, imported in importer.imports.items():
            path = imported.module.source.path
            if path not in paths:
                paths.add(path)
                found.append((imported.module, by or imported))
            seen.add(number)

    add_imports_of(module, None)
    for importer, by in found:  # which grows
        add_imports_of(importer, by)
    return found
