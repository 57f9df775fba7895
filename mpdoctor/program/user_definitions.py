"""Classes and functions that the user defines, and the values that stand for them, their instances and parameters."""

from __future__ import annotations

from dataclasses import field
from typing import Iterator, Mapping

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.values import NOWHERE, Api, Either, Value, options


@dataclass(frozen=True, eq=False, repr=False)
class Parameter(Value):
    """A parameter of a function of the user's whose callers are not known (so also: of `Layer.call`).

    index
        Its position, `self` counted, -1 for keyword-only ones, *args and **kwargs.
    default
        Its default value, None where it has none.
    """

    name: str = ""
    index: int = -1
    function: FunctionFacts | None = field(default=None, repr=False)
    default: Value | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Defined(Value):
    """A class or function of the user's own (or a lambda). `bound` is the object whose method it is."""

    of: ClassFacts | FunctionFacts = field(default_factory=lambda: FunctionFacts())
    bound: Value | None = None

    @property
    def parts(self) -> tuple[Value, ...]:
        return () if self.bound is None else (self.bound,)


@dataclass(frozen=True, eq=False, repr=False)
class Instance(Value):
    """`self` in a method of the user's own class, whichever instance it is. What is known of it is in
    `of.attributes`."""

    of: ClassFacts = field(default_factory=lambda: ClassFacts())


@dataclass(frozen=True, eq=False)
class FunctionFacts:
    """A function, method or lambda of the user's.

    name, qualified
        "call" and "MyLayer.call"; a lambda is "<lambda>".
    parameters
        Names in order, `self` included, keyword-only ones last; `*args` and `**kwargs` with their stars.
    defaults
        Default value by parameter name.
    owner
        The class whose method it is.
    enclosing
        The function that it is defined in, if any.
    location
        Its name in the `def` line.
    """

    name: str = ""
    qualified: str = ""
    parameters: tuple[str, ...] = ()
    defaults: Mapping[str, Value] = field(default_factory=dict, repr=False)
    decorators: tuple[Value, ...] = field(default=(), repr=False)
    owner: ClassFacts | None = field(default=None, repr=False)
    enclosing: FunctionFacts | None = field(default=None, repr=False)
    location: Location = field(default=NOWHERE, repr=False)


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """A class of the user's.

    bases
        As values: Api for a library's class, Defined for the user's own.
    kind
        What it is to Keras, through all its own bases: "layer", "model", "optimizer", "metric", "loss",
        "callback", or None. (A model is a layer to Keras; here it is a "model".)
    methods
        By name, only those that stand in this class; `find_method` looks into the user's own bases too.
    attributes
        What `self.x = …` assigned, in __init__ and build first, and what stands in the class body. Where
        instances differ or several lines assign it: an Either.
    base_arguments
        Keyword arguments of its `super().__init__(…)` call to a library's class: `dtype`, `autocast`, `name`
        …
    location
        Its name in the `class` line.
    """

    name: str = ""
    bases: tuple[Value, ...] = ()
    kind: str | None = None
    methods: Mapping[str, FunctionFacts] = field(default_factory=dict, repr=False)
    attributes: dict[str, Value] = field(default_factory=dict, repr=False)
    base_arguments: dict[str, Value] = field(default_factory=dict, repr=False)
    location: Location = field(default=NOWHERE, repr=False)

    def lineage(self) -> Iterator[ClassFacts]:
        """The class and its own bases, nearest first."""
        seen, waiting = set(), [self]
        while waiting:
            one = waiting.pop(0)
            if id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            for base in one.bases:
                waiting.extend(o.of for o in options(base) if isinstance(o, Defined) and isinstance(o.of, ClassFacts))

    def base_argument(self, name: str) -> Value | None:
        """What it, or the nearest of the user's own bases that does, hands to `super().__init__(…)` by this name. For a
        parameter that is handed on this is its default."""
        for ancestor in self.lineage():
            given = ancestor.base_arguments.get(name)
            found = [v.default if isinstance(v, Parameter) and v.default is not None else v for v in options(given)]
            if found:
                return found[0] if len(found) == 1 else Either(found[0].location, tuple(found))
        return None

    def find_method(self, name: str) -> FunctionFacts | None:
        """The method as written in this class or in the nearest of the user's own bases."""
        return next((ancestor.methods[name] for ancestor in self.lineage() if name in ancestor.methods), None)

    def library_bases(self) -> Iterator[Api]:
        """Every library class that it derives from."""
        for ancestor in self.lineage():
            for base in ancestor.bases:
                yield from (option for option in options(base) if isinstance(option, Api))
