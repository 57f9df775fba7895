"""What the program does with its optimizers outside of steps: the line that makes one, what is set on a wrapper."""

from __future__ import annotations

import math
import os
import sys
from typing import Any

from mpdoctor.examiner.ownership import is_own, own_location
from mpdoctor.examiner.patching import replace_method
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import WriteFacts


class OptimizerNotes:
    """Notes on every optimizer of one process."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Location]] = {}
        self._writes: dict[int, list[WriteFacts]] = {}

    def install(self, keras: Any) -> None:
        for cls in (*keras.optimizer_bases, *keras.wrappers):
            self._note_births(cls)
        for cls in keras.wrappers:
            self._note_writes(keras, cls)

    def made_at(self, optimizer: Any) -> Location | None:
        known = self._made.get(id(optimizer))
        return known[1] if known else None

    def writes(self, optimizer: Any) -> tuple[WriteFacts, ...]:
        return tuple(self._writes.get(id(optimizer), ()))

    def _note_births(self, cls: type) -> None:
        def initialise(original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            place = own_location(sys._getframe(2))
            if place is not None:
                self._made.setdefault(id(optimizer), (optimizer, place))
            original(optimizer, *args, **kwargs)

        replace_method(cls, "__init__", initialise)

    def _note_writes(self, keras: Any, cls: type) -> None:
        """Assignments on a wrapper by a line of the user's: does the inner optimizer get to know?"""

        def assign(original: Any, wrapper: Any, name: str, value: Any) -> None:
            original(wrapper, name, value)
            frame = sys._getframe(2)
            inner = keras.inner(wrapper) if is_own(frame.f_code.co_filename) else None
            if inner is None or name.startswith("_") or not hasattr(inner, name):
                return
            place = Location(os.path.abspath(frame.f_code.co_filename), frame.f_lineno)
            now = getattr(inner, name)
            written = WriteFacts(name, _short(value), _short(now), _is_same(now, value), place)
            self._writes.setdefault(id(wrapper), []).append(written)

        replace_method(cls, "__setattr__", assign)


def _short(value: Any) -> str:
    text = repr(_plain(value))
    return text if len(text) <= 120 else text[:117] + "..."


def _is_same(one: Any, other: Any) -> bool:
    """Keras keeps 1e-4 as a float32 variable, which reads 9.999999747378752e-05."""
    one, other = _plain(one), _plain(other)
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-5)
    return one is other or repr(one) == repr(other)


def _plain(value: Any) -> Any:
    """A scalar variable or tensor as a Python number."""
    numpy = getattr(value, "numpy", None)
    return float(numpy()) if callable(numpy) and getattr(value, "shape", None) == () else value
