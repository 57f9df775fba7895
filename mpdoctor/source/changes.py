"""What one walk changes in things that other walks see as well: an imported module's names, classes and objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mpdoctor.program.values import MISSING

Shared = TypeVar("Shared", bound="dict[Any, Any]")


class Changes:
    """Keeps each change, so that the next walk can start from what was there before, and a rule can still see this
    one's. What the walk created itself is its own, and no change."""

    def __init__(self) -> None:
        self._created: set[int] = set()
        self._made: list[tuple[dict[Any, Any], Any, Any, Any]] = []  # where, key, before, after

    def created(self, one: Shared) -> Shared:
        self._created.add(id(one))
        return one

    def set(self, where: dict[Any, Any], key: Any, value: Any) -> None:
        if id(where) not in self._created:
            self._made.append((where, key, where.get(key, MISSING), value))
        where[key] = value

    def take_back(self) -> None:
        for where, key, before, _ in reversed(self._made):
            if before is MISSING:
                where.pop(key, None)
            else:
                where[key] = before

    def bring_in(self) -> None:
        for where, key, _, after in self._made:
            where[key] = after

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
