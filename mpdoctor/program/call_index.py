"""The calls of a program, found by what they call."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Iterable, Iterator

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Api


class CallIndex:
    """Index of a program's calls, in program order. Dozens of rules ask it for a few calls each."""

    def __init__(self, calls: tuple[Call, ...]) -> None:
        self.all = calls

    @cached_property
    def of_libraries(self) -> tuple[Call, ...]:
        """The calls of a library's functions and classes."""
        return tuple(call for call in self.all if isinstance(call.callee, Api))

    def by_names(self, names: Iterable[str]) -> Iterator[Call]:
        """Calls of a library's functions or classes, synonyms included."""
        return _in_order([self._by_public_name.get(name, []) for name in dict.fromkeys(map(public_name, names))])

    @cached_property
    def of_objects(self) -> tuple[Call, ...]:
        """The calls of what a call has made: `layer(x)`, `loss(labels, logits)`."""
        return tuple(call for call in self.all if isinstance(call.callee, Call))

    def by_last_names(self, names: Iterable[str]) -> Iterator[Call]:
        """Calls of everything that has one of these names: methods, functions of libraries, functions of the user's."""
        return _in_order([self._by_last_name.get(name, []) for name in dict.fromkeys(names)])

    def by_methods(self, names: Iterable[str]) -> Iterator[Call]:
        """Calls of `something.name(…)`, where `something` is no library module."""
        return (call for call in self.by_last_names(names) if call.receiver is not None)

    def makings_of(self, own: ClassFacts) -> list[Call]:
        """The calls that make an instance of one of the user's own classes, or of a class below it, but for those in
        its `from_config`: `cls(**config)` makes a copy, of which only the config knows the dtype."""
        return self._makings.get(id(own), [])

    @cached_property
    def _by_public_name(self) -> dict[str, list[Call]]:
        calls: dict[str, list[Call]] = defaultdict(list)
        for call in self.of_libraries:
            if isinstance(call.callee, Api):
                calls[public_name(call.callee.name)].append(call)
        return calls

    @cached_property
    def _by_last_name(self) -> dict[str, list[Call]]:
        calls: dict[str, list[Call]] = defaultdict(list)
        for call in self.all:
            calls[call.method].append(call)
        return calls

    @cached_property
    def _makings(self) -> dict[int, list[Call]]:
        """The calls that instantiate a class of the user's or a subclass of it, by the id of the class."""
        makings: dict[int, list[Call]] = {}
        for call in self.all:
            if isinstance(call.callee, Defined) and isinstance(call.callee.of, ClassFacts) and not _makes_a_copy(call):
                for base in call.callee.of.lineage():
                    makings.setdefault(id(base), []).append(call)
        return makings


def _makes_a_copy(call: Call) -> bool:
    return call.open and call.context.function is not None and call.context.function.name == "from_config"


def _in_order(several: list[list[Call]]) -> Iterator[Call]:
    if len(several) == 1:
        return iter(several[0])
    return iter(sorted((call for calls in several for call in calls), key=lambda call: call.order))
