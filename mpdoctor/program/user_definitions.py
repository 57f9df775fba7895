"""Classes and functions that the user defines, and the values that stand for them, their instances and parameters."""

from __future__ import annotations

from dataclasses import field
from typing import Iterator, Mapping

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.values import NOWHERE, Api, Either, Known, Value, agreed, is_api, options

_MOST_ANCESTORS = 200


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

    @property
    def is_of_call(self) -> bool:
        """Whether it is a parameter of a function named `call`, as that of a layer is."""
        return self.function is not None and self.function.name == "call"


@dataclass(frozen=True, eq=False, repr=False)
class Defined(Value):
    """A class or function of the user's own (or a lambda).

    bound
        The object whose method it is.
    closure
        Of a function that is defined inside another one: with the names around it in the run that defined it. Only the
        interpreter looks into it.
    """

    of: ClassFacts | FunctionFacts = field(default_factory=lambda: FunctionFacts())
    bound: Value | None = None
    closure: object | None = None

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
    changed_by
        The user's own decorators that put a function in its place which may change arguments or results, and does not
        just hand both on.
    run_by
        Calls of libraries that run it with what the command line says: `fire.Fire(main)`.
    """

    name: str = ""
    qualified: str = ""
    parameters: tuple[str, ...] = ()
    defaults: Mapping[str, Value] = field(default_factory=dict, repr=False)
    decorators: tuple[Value, ...] = field(default=(), repr=False)
    owner: ClassFacts | None = field(default=None, repr=False)
    enclosing: FunctionFacts | None = field(default=None, repr=False)
    location: Location = field(default=NOWHERE, repr=False)
    changed_by: list[Value] = field(default_factory=list, repr=False)
    run_by: list[Value] = field(default_factory=list, repr=False)

    @property
    def first_given(self) -> int:
        """The index of the first parameter that a call names: 1 in a method, behind `self`; 0 in a static one."""
        is_static = any(is_api(decorator, "builtins.staticmethod") for decorator in self.decorators)
        return 0 if self.owner is None or is_static else 1

    @property
    def self_name(self) -> str:
        """What a method calls its object, `self`; "" in a static or a class method, and outside of classes."""
        is_of_class = any(is_api(decorator, "builtins.classmethod") for decorator in self.decorators)
        is_bound = self.first_given == 1 and not is_of_class and bool(self.parameters)
        return self.parameters[0] if is_bound and not self.parameters[0].startswith("*") else ""

    @property
    def owner_around(self) -> ClassFacts | None:
        """The class whose method it is, or stands in."""
        function: FunctionFacts | None = self
        while function is not None and function.owner is None:
            function = function.enclosing
        return None if function is None else function.owner

    @property
    def is_test(self) -> bool:
        """Whether it is a test, or what the tests of a class share, by the names that unittest and pytest know them by.
        A model's `test_step` is none."""
        if self.owner is not None and self.owner.kind is not None:
            return False
        if self.name.startswith("test") or (self.owner is not None and self.owner.holds_tests):
            return True
        return self.enclosing is not None and self.enclosing.is_test


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """A class of the user's.

    bases
        As values: Api for a library's class, Defined for the user's own.
    own_kind
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
    mixed_into
        Of a class without a kind of its own: the classes derived from it that have one, by their ids.
    body_names
        The names that its body binds: methods, and attributes that all instances share.
    as_inherited
        Methods of its own bases that do something else for its objects, as they were followed for these, by name.
    """

    name: str = ""
    bases: tuple[Value, ...] = ()
    own_kind: str | None = None
    methods: Mapping[str, FunctionFacts] = field(default_factory=dict, repr=False)
    attributes: dict[str, Value] = field(default_factory=dict, repr=False)
    base_arguments: dict[str, Value] = field(default_factory=dict, repr=False)
    location: Location = field(default=NOWHERE, repr=False)
    mixed_into: dict[int, ClassFacts] = field(default_factory=dict, repr=False)
    body_names: set[str] = field(default_factory=set, repr=False)
    as_inherited: dict[str, FunctionFacts] = field(default_factory=dict, repr=False)

    @property
    def kind(self) -> str | None:
        """The kind of Keras class that it is; of a mixin, the kind on which all classes agree that it is mixed into."""
        if self.own_kind is not None or not self.mixed_into:
            return self.own_kind
        return agreed(own.own_kind for own in self.mixed_into.values())

    @property
    def is_layer(self) -> bool:
        """Whether it is a class of layers or models, which are layers to Keras."""
        return self.kind in ("layer", "model")

    @property
    def whole(self) -> ClassFacts:
        """The class itself; in the place of a mixin the class that it is mixed into, if that is a single one."""
        derived = list(self.mixed_into.values())
        return derived[0] if len(derived) == 1 else self

    def lineage(self) -> list[ClassFacts]:
        """The class and its own bases, nearest first, up to a number that nobody exceeds by hand: each class is asked
        for its lineage, and a generated program may have ten thousand, each derived from the one before."""
        lineage, seen = [self], {self}
        for one in lineage:
            for base in one.bases if len(lineage) < _MOST_ANCESTORS else ():
                for option in () if isinstance(base, Api) else options(base):
                    of = option.of if isinstance(option, Defined) else None
                    if isinstance(of, ClassFacts) and of not in seen:
                        seen.add(of)
                        lineage.append(of)
        return lineage

    def base_argument(self, name: str) -> Value | None:
        """What the class, or the nearest of its own bases, hands to `super().__init__(…)` by this name; of a parameter
        that is handed on, its default."""
        for ancestor in (*self.lineage(), *self.mixed_into.values()):
            given = ancestor.base_arguments.get(name)
            choices = [v.default if isinstance(v, Parameter) and v.default is not None else v for v in options(given)]
            if choices:
                # read once as the class is made and once by itself, a default stands there twice
                is_one = all(_is_same_constant(choice, choices[0]) for choice in choices[1:])
                return choices[0] if is_one else Either(choices[0].location, tuple(choices))
        return None

    def find_method(self, name: str) -> FunctionFacts | None:
        """The method as written in this class or in the nearest of the user's own bases."""
        for ancestor in self.lineage():  # asked so often that a generator shows
            if name in ancestor.methods:
                return ancestor.methods[name]
            if name in ancestor.as_inherited:
                return ancestor.as_inherited[name]
        return None

    @property
    def holds_tests(self) -> bool:
        """Whether it is a TestCase, or has tests for those that it is mixed into."""
        is_case = any(base.name.endswith("TestCase") for base in self.library_bases())
        return is_case or any(name.startswith("test_") for name in self.methods)

    def library_bases(self) -> Iterator[Api]:
        """Every library class that this class derives from, directly or through others."""
        for ancestor in self.lineage():
            for base in ancestor.bases:
                yield from (option for option in options(base) if isinstance(option, Api))


def _is_same_constant(one: Value, other: Value) -> bool:
    return isinstance(one, Known) and isinstance(other, Known) and bool(one.value == other.value)
