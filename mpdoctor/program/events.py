"""Events: what a program does, one after the other, with the values that it does it with."""

from __future__ import annotations

from dataclasses import field
from typing import Union

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.values import (
    NOWHERE,
    Api,
    Call,
    Context,
    Operation,
    Value,
)


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
        """Whether it is this place that looks up this part of the name, so that it fails here if it is missing."""
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
