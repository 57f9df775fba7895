"""State of the symbolic interpreter: current scope, frame, module and context, the events so far, side effects."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.context import Branch, Context
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Attribute, Either, Value, options
from mpdoctor.source.interpreter.state.events import MOST_EVENTS, Enough, Events
from mpdoctor.source.interpreter.state.scopes import Closure, Draft, Frame, Module, Scope, Written
from mpdoctor.source.interpreter.state.side_effects import SideEffects
from mpdoctor.source.joining import joined, without_none
from mpdoctor.source.modules import Files
from mpdoctor.source.reading import Source


@dataclass(frozen=False, eq=False, repr=False)
class Position:
    """A place of the interpreter in a program, to which it can return."""

    module: Module
    scope: Scope
    frame: Frame
    context: Context
    events: Events
    owner: ClassFacts | None
    qualified: list[str]
    depth: int


@dataclass(frozen=False, eq=False, repr=False)
class Walk:
    """One walk: a file executed as a script, or an imported module executed apart from what imports it.

    guarded
        The whole file: `SourceFacts.is_guarded`.
    script
        The module that is executed as a script; None while an imported one is executed apart from what imports it.
    call_stack, inlined_statements
        The functions that are being inlined, outermost first; statements executed in inlined functions so far.
    times_inlined, statements_in, executed, executed_alone
        How often each closure was inlined, how many statements were executed in it, which were executed at all, and
        which with nothing known of their arguments, by id.
    too_deep
        How many calls were not followed because they stood too deep below a function that nobody calls.
    changed
        What lists and dicts became when the program changed them in place, by id.
    methods_by_name
        Methods of lists and dicts that the program reads without calling them, `append = layers.append`, and the
        expressions of which they are read, by id.
    entering
        What runs where a context manager yields, by the id of the call that makes it.
    visiting, unrolling
        How many context managers surround the body in hand that yield to it; how many comprehensions that are followed
        one element after the other.
    instantiated
        Ids of the user's own classes of which the program makes instances.
    made_for
        The class of `self` in the methods of a base class of which the program makes no object itself: the class
        of which it does, where all others below the base are bases of that one, by the base class's id.
    set_up
        Ids of the user's own classes whose objects were given attributes.
    written
        Which function wrote an attribute last, by the id of the object's attributes and the name.
    drafts
        What an object's attribute added to those of its class last, by the id of the object's attributes and the name.
    chosen_behind_guard
        Ids of the user's functions and classes that the program chooses where it asked for a version, say:
        `step = step_of_keras_3 if IS_KERAS_3 else step_of_keras_2`.
    chosen_in
        The arm of an `if` in which a function of the user's was given a name last, by the function's id.
    dropped
        The places of calls whose result the program drops.
    last_order, modules_read
        The event behind which the walk ends; modules that it has read so far.
    settings_read
        The files of settings that the program may read, with the digests of their bytes.
    class_made
        The class for which a metaclass' methods are being followed.
    set_once
        Whether attributes of a name are set once (see `certain_answers`), by the name and by how much was imported.
    """

    guarded: bool = False
    script: Module | None = None
    call_stack: list[Closure] = field(default_factory=list)
    inlined_statements: int = 0
    times_inlined: Counter[int] = field(default_factory=Counter)
    statements_in: Counter[int] = field(default_factory=Counter)
    executed: set[int] = field(default_factory=set)
    executed_alone: set[int] = field(default_factory=set)
    too_deep: int = 0
    changed: dict[int, Value] = field(default_factory=dict)
    methods_by_name: dict[int, tuple[Attribute, ast.expr]] = field(default_factory=dict)
    entering: dict[int, Callable[[Value], None]] = field(default_factory=dict)
    visiting: int = 0
    unrolling: int = 0
    instantiated: set[int] = field(default_factory=set)
    made_for: dict[int, ClassFacts] = field(default_factory=dict)
    set_up: set[int] = field(default_factory=set)
    written: dict[tuple[int, str], Written] = field(default_factory=dict)
    drafts: dict[tuple[int, str], Draft] = field(default_factory=dict)
    chosen_behind_guard: set[int] = field(default_factory=set)
    chosen_in: dict[int, Branch] = field(default_factory=dict)
    side_effects: SideEffects = field(default_factory=SideEffects)
    dropped: set[Location] = field(default_factory=set)
    last_order: int = MOST_EVENTS
    modules_read: int = 0
    settings_read: dict[str, str] = field(default_factory=dict)
    class_made: Value | None = None
    set_once: dict[tuple[str, int, int], bool] = field(default_factory=dict)


@dataclass(frozen=False, eq=False, repr=False)
class State:
    """The first parameter of every function of the interpreter.

    expressions, statements
        The function that evaluates or executes a node, by its type. It is looked up here, since an expression may hold
        statements (the function that it calls) as a statement holds expressions.
    load_module
        Reads and executes the file of a first-party module that was not imported before.
    files, root, shown
        Where first-party modules are found; how the files that were asked about are shown, by absolute path.
    modules
        Of the program's own, by absolute path.
    owner, qualified
        The class whose body is being executed; its name and those of the classes around it.
    depth
        How deeply the node in hand is nested.
    order, runs, frameworks_named
        Events so far; functions executed on their own so far; uses of TensorFlow's and Keras' names so far.
    imported
        The values that import statements made.
    closures
        By id of their FunctionFacts, which the closure keeps alive.
    attributes
        Of one instance, by id of the Call that made it.
    members
        The enumeration of which a constant is a member.
    metaclasses
        The user's own metaclass of a class, by the class' id.
    flags
        Defaults of the command line's flags, by name; and the epsilon of Keras that the program sets.
    walk
        The walk that is under way.
    """

    expressions: dict[type[ast.expr], Evaluate]
    statements: dict[type[ast.stmt], Execute]
    load_module: LoadModule
    files: Files = field(default_factory=Files)
    root: Path | None = None
    shown: Mapping[Path, str] = field(default_factory=dict)
    modules: dict[Path, Module] = field(default_factory=dict)
    module: Module = field(default_factory=lambda: Module(source=Source("", "", ast.Module([], []))))
    scope: Scope = field(default_factory=Scope)
    frame: Frame = field(default_factory=Frame)
    context: Context = field(default_factory=Context)
    events: Events = field(default_factory=Events)
    owner: ClassFacts | None = None
    qualified: list[str] = field(default_factory=list)
    depth: int = 0
    order: int = 0
    runs: int = 0
    frameworks_named: int = 0
    imported: set[Value] = field(default_factory=set)
    closures: dict[int, Closure] = field(default_factory=dict)
    attributes: dict[int, dict[str, Value]] = field(default_factory=dict)
    members: dict[Value, ClassFacts] = field(default_factory=dict)
    metaclasses: dict[int, ClassFacts] = field(default_factory=dict)
    flags: dict[str, Value] = field(default_factory=dict)
    walk: Walk = field(default_factory=Walk)

    def next_order(self) -> int:
        self.order += 1
        return self.order

    def end_if_enough(self) -> None:
        """Raise Enough where the walk has come to its last event. Asked before each statement."""
        if self.order > self.walk.last_order:
            raise Enough

    def bind(self, name: str, value: Value) -> None:
        """Give a name a value. Outside the walked paths of this scope, a `global` may or may not have been assigned:
        both stay possible. A None is only a placeholder for whatever comes after it."""
        elsewhere = self.scope.redirected.get(name)
        if elsewhere is None:
            self.scope.names[name] = value
        else:
            self.walk.side_effects.set(elsewhere.names, name, without_none(joined((elsewhere.names.get(name), value))))

    def choose(self, value: Value) -> None:
        """Remember the functions and classes that are given a name behind a guard, or in an arm of an `if`."""
        if not isinstance(value, (Defined, Either)):
            return
        chosen = [option.of for option in options(value) if isinstance(option, Defined)]
        if self.context.guarded and not self.walk.guarded:
            self.walk.chosen_behind_guard.update(map(id, chosen))
        if self.context.branches:
            self.walk.chosen_in.update((id(of), self.context.branches[-1]) for of in chosen)

    def position(self) -> Position:
        return Position(
            self.module, self.scope, self.frame, self.context, self.events, self.owner, self.qualified, self.depth
        )

    def go_back_to(self, position: Position) -> None:
        self.module, self.scope, self.frame = position.module, position.scope, position.frame
        self.context, self.events = position.context, position.events
        self.owner, self.qualified, self.depth = position.owner, position.qualified, position.depth

    def place(self, node: ast.expr | ast.stmt) -> Location:
        return getattr(node, "place", None) or self.module.source.located(node)


Evaluate = Callable[[State, ast.expr], Value]
Execute = Callable[[State, ast.stmt], bool]
LoadModule = Callable[[State, Path, str], Module | None]
