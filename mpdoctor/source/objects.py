"""Attributes: what `object.name` gives and what assigning it does, for libraries, modules and the user's own
classes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.values import (
    Api,
    Attribute,
    Call,
    ClassFacts,
    Defined,
    FunctionFacts,
    Known,
    Unknown,
    Value,
    class_of,
    options,
)
from mpdoctor.source.arithmetic import joined
from mpdoctor.source.expressions import Expressions
from mpdoctor.source.scopes import Closure, Module

SETTING_UP = ("__init__", "build", "setup", "__post_init__")


@dataclass(frozen=True, eq=False, repr=False)
class Super(Call):
    """`super()`: looks names up behind one class of an instance's own."""

    instance: Value = field(default_factory=Unknown)
    behind: ClassFacts = field(default_factory=ClassFacts)


class Objects(Expressions):
    def __init__(self) -> None:
        super().__init__()
        self.closures: dict[int, Closure] = {}  # by id of the FunctionFacts, which the closure keeps alive
        self.attributes: dict[int, dict[str, Value]] = {}  # of one instance, by id of the Call that made it

    @abstractmethod
    def name_in_module(self, module: Module, name: str, location: Location) -> Value: ...

    @abstractmethod
    def follow(
        self,
        closure: Closure,
        args: tuple[Value, ...],
        keywords: tuple[tuple[str, Value], ...],
        is_open: bool,
        location: Location,
    ) -> Value | None: ...

    def attribute_of(self, of: Value, name: str, location: Location) -> Value:
        """The value of `of.name`; an `Attribute` where nothing better is known."""
        if isinstance(of, Api):
            return self.api(f"{of.spelled}.{name}", location)
        if isinstance(of, Module):
            return self.name_in_module(of, name, location)
        found: Value | None = None
        if isinstance(of, Super):
            found = self._behind(of, name, location)
        elif isinstance(of, Defined) and isinstance(of.of, ClassFacts):
            found = self._of_class(of.of, of, name, location, of)
        else:
            own = class_of(of)
            if own is not None:
                found = self.attributes.get(id(of), {}).get(name)
                found = found or self._of_class(own, of, name, location, Defined(location, own))
        return found or Attribute(location, of, name)

    def _of_class(self, own: ClassFacts, of: Value, name: str, location: Location, itself: Value) -> Value | None:
        if name == "__class__":
            return itself
        for one in own.lineage():
            if name in one.attributes:
                return one.attributes[name]
            if name in one.methods:
                is_instance = not isinstance(of, Defined)
                return self._method(one.methods[name], of if is_instance else None, itself, location)
        return None

    def _behind(self, of: Super, name: str, location: Location) -> Value | None:
        for one in list(of.behind.lineage())[1:]:
            if name in one.methods:
                return self._method(one.methods[name], of.instance, Defined(location, one), location)
        return None

    def _method(self, facts: FunctionFacts, bound: Value | None, itself: Value, location: Location) -> Value | None:
        closure = self.closures.get(id(facts))
        if closure is None or closure.is_static:
            return Defined(location, facts)
        if closure.is_classmethod:
            return Defined(location, facts, itself)
        if closure.is_property and bound is not None:
            return self.follow(closure, (bound,), (), False, location)
        return Defined(location, facts, bound)

    def store_attribute(self, of: Value, name: str, value: Value) -> None:
        """Remember `of.name = value` for the objects of the user's own classes.

        A straight line of __init__ or build replaces what was there; elsewhere both stay possible. A None is
        only a placeholder ("not built yet") for whatever comes after it."""
        choices = options(of)
        function = self.context.function
        is_setting_up = function is not None and function.name in SETTING_UP
        replaces = is_setting_up and len(choices) == 1 and not self.context.branches and not self.context.loops
        for one in choices:
            own = class_of(one)
            if own is None:
                continue
            if isinstance(one, Call):
                mine = self._attributes_of(one)
                self.changes.set(mine, name, value if replaces else _either(mine.get(name), value))
                self.changes.set(own.attributes, name, _either(own.attributes.get(name), value))
            else:
                is_settled = replaces and id(own) not in self.instantiated
                old = None if is_settled else own.attributes.get(name)
                self.changes.set(own.attributes, name, _either(old, value))

    def _attributes_of(self, instance: Call) -> dict[str, Value]:
        found = self.attributes.get(id(instance))
        if found is None:
            found = self.attributes[id(instance)] = self.changes.created({})
        return found

    @property
    @abstractmethod
    def instantiated(self) -> set[int]:
        """Ids of the user's own classes of which the program makes instances."""


def _either(old: Value | None, new: Value) -> Value:
    if old is None or (isinstance(old, Known) and old.value is None):
        return new
    if isinstance(new, Known) and new.value is None:
        return old
    return joined((old, new))
