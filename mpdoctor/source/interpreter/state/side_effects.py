"""Side effects of one walk on what other walks see as well: an imported module's names, classes and objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")


class _Reversible(Protocol):
    def take_back(self) -> None: ...

    def bring_in(self) -> None: ...


class _Change(Generic[Key, Item]):
    """One key of a shared dict, and what it held before (None: nothing) and after."""

    __slots__ = ("after", "before", "key", "where")

    def __init__(self, where: dict[Key, Item], key: Key, after: Item) -> None:
        self.where, self.key, self.before, self.after = where, key, where.get(key), after

    def take_back(self) -> None:
        if self.before is None:
            self.where.pop(self.key, None)
        else:
            self.where[self.key] = self.before

    def bring_in(self) -> None:
        self.where[self.key] = self.after


class SideEffects:
    """Keeps each change, so that the next walk can start from what was there before, and a rule can still see this
    walk's. What the walk created itself is its own, and no change."""

    __slots__ = ("_changes", "_created")

    def __init__(self) -> None:
        self._created: set[int] = set()
        self._changes: list[_Reversible] = []

    def created(self, shared: dict[Key, Item]) -> dict[Key, Item]:
        self._created.add(id(shared))
        return shared

    def set(self, where: dict[Key, Item], key: Key, value: Item) -> None:
        if id(where) not in self._created:
            self._changes.append(_Change(where, key, value))
        where[key] = value

    def take_back(self) -> None:
        for change in reversed(self._changes):
            change.take_back()

    def bring_in(self) -> None:
        for change in self._changes:
            change.bring_in()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        self.bring_in()
        try:
            yield
        finally:
            self.take_back()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        self.take_back()
        try:
            yield
        finally:
            self.bring_in()
