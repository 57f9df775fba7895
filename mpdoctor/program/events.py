"""Events: the actions of a program in order, with the values involved."""

from __future__ import annotations

from dataclasses import field
from typing import Union

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.api_parameters import PARAMETERS
from mpdoctor.program.context import Context
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import NOWHERE, Api, Attribute, Unknown, Value


@dataclass(frozen=True, eq=False, repr=False)
class Call(Value):
    """A call, and also its result: an instance where a class is called.

    args, keywords
        Positional arguments without `*rest`; (name, value) pairs, with those of a literal `**{...}`.
    open
        True if `*rest` or `**rest` may hand over more arguments than are seen here.
    result
        Where a function of the user's own was followed: what it returned for these arguments. The expression
        that calls it then stands for that result, and this Call is only an event in `SourceFacts.calls`.
    yielded
        Of a generator of the user's own that was followed: what it gives, one after the other.
    dropped
        True if the call is a statement of its own, whose result nobody keeps.
    order
        Position in program order, comparable with that of every other event.
    """

    callee: Value = field(default_factory=Unknown)
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    context: Context = field(default_factory=lambda: Context(), repr=False)
    order: int = field(default=0, repr=False)
    open: bool = False
    dropped: bool = field(default=False, repr=False)
    result: Value | None = field(default=None, repr=False)
    yielded: Value | None = field(default=None, repr=False)

    def keyword(self, name: str) -> Value | None:
        """The value of one keyword argument, None where it is not given."""
        for key, value in self.keywords:
            if key == name:
                return value
        return None

    def argument(self, position: int | None, keyword: str | None = None) -> Value | None:
        """One argument by position (from 0, `self` not counted) or by name; None where it is not given. Of TensorFlow's
        and Keras' functions on tensors the names are known: `argument(0)` is `x` in tf.abs(x=…).

        With `open`, None means "not seen" and not "left out"."""
        if position is not None and position < len(self.args):
            return self.args[position]
        if not self.keywords:
            return None
        value = self.keyword(keyword) if keyword is not None else None
        return self._given_by_name(position) if value is None and position is not None else value

    @property
    def given(self) -> tuple[Value, ...]:
        """All arguments, positional ones first."""
        return (*self.args, *[value for _, value in self.keywords]) if self.keywords else self.args

    def arguments(self, positions: slice) -> tuple[Value, ...]:
        """The arguments for these positions that are given, by position or by name, in order. Rules use this or
        `argument`, and never `args[0]`: a call may have no arguments."""
        if not self.keywords:
            return self.args[positions]
        last = len(self.args) + len(self.keywords) if positions.stop is None else positions.stop
        asked = range(last)[positions]  # an argument that is given by name may stand behind ones that are left out
        return tuple(value for value in map(self.argument, asked) if value is not None)

    def _given_by_name(self, position: int) -> Value | None:
        names = PARAMETERS.get(public_name(self.callee.name), ()) if isinstance(self.callee, Api) else ()
        return self.keyword(names[position]) if position < len(names) else None

    @property
    def method(self) -> str:
        """The last part of what is called: "fit" for model.fit(…), "Dense" for keras.layers.Dense(…), else
        ""."""
        if isinstance(self.callee, Attribute):
            return self.callee.name
        if isinstance(self.callee, Api):
            return self.callee.name.rpartition(".")[2]
        return self.callee.of.name if isinstance(self.callee, Defined) else ""

    @property
    def receiver(self) -> Value | None:
        """`model` in model.fit(…); None for a call of a plain function or class. The receiver of a method of
        the user's own class is `callee.bound`, which is what this gives."""
        if isinstance(self.callee, Attribute):
            return self.callee.of
        return self.callee.bound if isinstance(self.callee, Defined) else None

    @property
    def parts(self) -> tuple[Value, ...]:
        if not self.keywords:
            return (self.callee, *self.args)
        return (self.callee, *self.args, *[argument for _, argument in self.keywords])


@dataclass(frozen=True, eq=False, repr=False)
class Operation(Value):
    """`left + right`, `-x`, `a < b`, `not a`, `a and b`: operators as Python writes them, one or more
    operands.

    `x += y` is the operation "+" with `augmented` True."""

    operator: str = ""
    operands: tuple[Value, ...] = ()
    context: Context = field(default_factory=lambda: Context(), repr=False)
    order: int = field(default=0, repr=False)
    augmented: bool = False

    @property
    def parts(self) -> tuple[Value, ...]:
        return self.operands


@dataclass(frozen=True, eq=False)
class Use:
    """The program names something of a library: an import, or the outermost dotted name
    (`tf.keras.layers.Dense`).

    is_import
        True for the name in an import statement.
    location
        The dotted name; in `from a import b` the `b`.
    dotted
        How many parts of the name are looked up here: 2 in `tf.keras.layers`, 0 for a name that an import (perhaps in
        another file) has bound before, and that cannot fail any more.
    """

    api: Api
    location: Location
    context: Context = field(default_factory=Context, repr=False)
    order: int = 0
    is_import: bool = False
    dotted: int = 0

    def looks_up(self, part: str) -> bool:
        """Whether this place looks up this part of the name, and so fails where the part is missing."""
        return self.is_import or (self.dotted > 0 and part in self.api.spelled.split(".")[-self.dotted :])


@dataclass(frozen=True, eq=False)
class Read:
    """An attribute is read: `of.name`. A library's dotted names are `Use`s. `location` is the whole
    expression, `name_location` the name behind the dot. `is_called` is True for the method in
    `of.name(…)`."""

    of: Value
    name: str
    location: Location
    name_location: Location = NOWHERE
    context: Context = field(default_factory=Context, repr=False)
    order: int = 0
    is_called: bool = False


@dataclass(frozen=True, eq=False)
class Write:
    """`of.name = value`; or `of[index] = value`, with `name` "". `augmented`: `of.name += …`; `value` is then
    the sum."""

    of: Value
    name: str
    value: Value
    location: Location
    context: Context = field(default_factory=Context, repr=False)
    order: int = 0
    index: Value | None = None
    augmented: bool = False


@dataclass(frozen=True, eq=False)
class With:
    """`with value as …:`; events with `order < e.order < end` stand inside it (and have `value` in
    `context.withs`)."""

    value: Value
    location: Location
    context: Context = field(default_factory=Context, repr=False)
    order: int = 0
    end: int = 0


@dataclass(frozen=True, eq=False)
class Return:
    """A function's `return value` (a lambda's body too); the function is `context.function`."""

    value: Value
    location: Location
    context: Context = field(default_factory=Context, repr=False)
    order: int = 0


Event = Union[Use, Read, Write, With, Return, Call, Operation]
