"""What the program does with its optimizers outside of steps: the line that makes one, what is set on a wrapper."""

from __future__ import annotations

import math
import os
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable

from mpdoctor.examiner.process.patching import replace_method
from mpdoctor.examiner.process.user_code import called_by_line, is_own, own_location
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import LostCallFacts, WriteFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasOptimizer


LOST_CALLS = ("exclude_from_weight_decay",)


class OptimizerHooks:
    """Notes on every optimizer of one process."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[KerasOptimizer, Location]] = {}
        self._writes: dict[int, list[WriteFacts]] = {}
        self._erased: dict[int, tuple[str, Location | None]] = {}
        self._by_compile: set[int] = set()
        self._lost: dict[int, list[LostCallFacts]] = {}

    def install(self, keras: KerasAdapter) -> None:
        for cls in (*keras.optimizer_bases, *keras.wrappers):
            self._note_births(cls)
        for cls in keras.wrappers:
            self._note_writes(keras, cls)
            self._note_erased(cls)
            for name in LOST_CALLS:
                if hasattr(cls, name):
                    self._note_lost_calls(cls, name)

    def made_at(self, optimizer: KerasOptimizer) -> Location | None:
        known = self._made.get(id(optimizer))
        return known[1] if known else None

    def outermost(self, keras: KerasAdapter) -> list[KerasOptimizer]:
        """The optimizers of this Keras that the program made, but for those inside of another."""
        kinds: tuple[type[KerasOptimizer], ...] = keras.optimizer_bases
        made = [optimizer for optimizer, _ in self._made.values() if isinstance(optimizer, kinds)]
        inner = {id(keras.inner(optimizer)) for optimizer in made}
        return [optimizer for optimizer in made if id(optimizer) not in inner]

    def erased(self, wrapper: KerasOptimizer) -> tuple[str, Location | None] | None:
        """The `loss_scale_factor` that the optimizer inside lost to this wrapper, and the line that wrapped it."""
        return self._erased.get(id(wrapper))

    def made_by_compile(self, wrapper: KerasOptimizer) -> bool:
        return id(wrapper) in self._by_compile

    def lost_calls(self, wrapper: KerasOptimizer) -> tuple[LostCallFacts, ...]:
        return tuple(self._lost.get(id(wrapper), ()))

    def writes(self, optimizer: KerasOptimizer) -> tuple[WriteFacts, ...]:
        return tuple(self._writes.get(id(optimizer), ()))

    def _note_births(self, cls: type) -> None:
        def initialise(
            original: Callable[..., object], optimizer: KerasOptimizer, *args: object, **kwargs: object
        ) -> None:
            place = own_location(_outside_of_constructors(optimizer, sys._getframe(2)))
            if place is not None:
                self._made.setdefault(id(optimizer), (optimizer, place))
            original(optimizer, *args, **kwargs)

        replace_method(cls, "__init__", initialise)

    def _note_erased(self, cls: type) -> None:
        """Keras 3 sets the `loss_scale_factor` of what it wraps to None."""

        def initialise(
            original: Callable[..., object], wrapper: KerasOptimizer, *args: object, **kwargs: object
        ) -> None:
            inner = kwargs.get("inner_optimizer", args[0] if args else None)
            before = getattr(inner, "loss_scale_factor", None)
            original(wrapper, *args, **kwargs)
            called = called_by_line(sys._getframe(2))
            if called is not None and called.co_name == "compile":
                self._by_compile.add(id(wrapper))
            if before is not None and getattr(inner, "loss_scale_factor", None) is None:
                self._erased.setdefault(id(wrapper), (repr(before), own_location(sys._getframe(2))))

        replace_method(cls, "__init__", initialise)

    def _note_lost_calls(self, cls: type, name: str) -> None:
        def call(original: Callable[..., object], wrapper: KerasOptimizer, *args: object, **kwargs: object) -> Any:
            frame = sys._getframe(2)
            if isinstance(wrapper, cls) and is_own(frame.f_code.co_filename):
                place = Location(os.path.abspath(frame.f_code.co_filename), frame.f_lineno)
                self._lost.setdefault(id(wrapper), []).append(LostCallFacts(name, place))
            return original(wrapper, *args, **kwargs)

        # where it is defined, not below: mpdoctor.training's wrapper takes what Keras' has of its own for what it means
        replace_method(next(owner for owner in cls.__mro__ if name in vars(owner)), name, call)

    def _note_writes(self, keras: KerasAdapter, cls: type) -> None:
        """Assignments on a wrapper by a line of the user's: does the inner optimizer get to know?"""

        def assign(original: Callable[..., object], wrapper: KerasOptimizer, name: str, value: object) -> None:
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


def _outside_of_constructors(optimizer: KerasOptimizer, frame: FrameType) -> FrameType:
    """The frame that makes the optimizer: the first one outside of its own constructor and those of its base
    classes."""
    while frame.f_back is not None and frame.f_code.co_argcount:
        if frame.f_locals.get(frame.f_code.co_varnames[0]) is not optimizer:
            break
        frame = frame.f_back
    return frame


def _short(value: object) -> str:
    text = repr(_plain(value))
    return text if len(text) <= 120 else text[:117] + "..."


def _is_same(one: Any, other: Any) -> bool:
    """Whether the numbers are the same, as far as float32 holds them: Keras keeps 1e-4 as a variable that reads
    9.999999747378752e-05."""
    one, other = _plain(one), _plain(other)
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-5)
    return one is other or repr(one) == repr(other)


def _plain(value: object) -> Any:
    """A scalar variable or tensor as a Python number."""
    numpy = getattr(value, "numpy", None)
    return float(numpy()) if callable(numpy) and getattr(value, "shape", None) == () else value
