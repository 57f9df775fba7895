"""The origins of layers, operations, metrics and losses: the line that constructed each, and under which dtype policy.

`Layer.__new__` of a Keras is wrapped once, and that of its metrics, losses, constraints and regularizers.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from contextlib import suppress
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Callable

from mpdoctor.examiner.process.autograph_files import OF_COPY
from mpdoctor.examiner.process.user_code import (
    call_of_librarys_layer,
    called_by_line,
    class_location,
    own_code,
    own_location,
)
from mpdoctor.facts.location import Location

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer

# Where Keras 3 keeps the functions that take tensors, operators among them.
_IS_FUNCTION = re.compile(r"[/\\]keras[/\\]src[/\\](ops|backend|activations|random)[/\\]").search

_IS_APPLICATION = re.compile(
    r"[/\\]keras[/\\](src[/\\])?applications[/\\]"
).search  # some pass the argument on in **kwargs
_OUTPUT_ACTIVATIONS = (
    "classifier_activation", "output_activation", "final_activation", "last_activation", "head_activation"
)  # fmt: skip


class Origins:
    """The origins of the layers and other parts of one process.

    policy_set
        Whether the program has set a global policy.
    """

    def __init__(self) -> None:
        self.policy_set = False
        self._made: weakref.WeakKeyDictionary[object, Location] = weakref.WeakKeyDictionary()
        self._made_by: weakref.WeakKeyDictionary[KerasLayer, CodeType] = weakref.WeakKeyDictionary()
        self._given_dtype: weakref.WeakKeyDictionary[KerasLayer, bool] = weakref.WeakKeyDictionary()
        self._global_then: weakref.WeakKeyDictionary[KerasLayer, str] = weakref.WeakKeyDictionary()
        self._before_policy: weakref.WeakKeyDictionary[KerasLayer, bool] = weakref.WeakKeyDictionary()
        self._policies: weakref.WeakKeyDictionary[KerasLayer, tuple[str, Location]] = weakref.WeakKeyDictionary()
        self._parts: dict[int, tuple[weakref.ReferenceType[object], Location]] = {}  # by identity
        self._noting: list[object] = []

    def install(self, layer_class: type, global_policy: Callable[[], str]) -> None:
        """Wrap `__new__` of this Keras' Layer."""
        layer_class.__new__ = self._watched_new(  # type: ignore[method-assign, assignment]
            layer_class.__new__, global_policy
        )

    def _watched_new(
        self, original_new: Callable[..., KerasLayer], global_policy: Callable[[], str]
    ) -> Callable[..., KerasLayer]:
        origins = self

        @functools.wraps(original_new)
        def __new__(cls: type, *args: object, **kwargs: object) -> KerasLayer:
            layer = original_new(cls, *args, **kwargs)
            origins._note_birth(layer, sys._getframe(1))
            origins._note_dtype(layer, kwargs, global_policy)
            if not origins.policy_set:
                origins._before_policy[layer] = True
            return layer

        return __new__

    def install_parts(self, classes: list[type]) -> None:
        """Note where a program makes its metrics, losses, constraints and regularizers."""
        for cls in classes:
            if not any(vars(base).get("__new__") in self._noting for base in cls.__mro__):
                self._note_births_of(cls)

    def _note_births_of(self, cls: Any) -> None:
        original_new, origins = cls.__new__, self

        def __new__(made: Any, *args: object, **kwargs: object) -> object:
            # Python refuses arguments to a class without __init__ only where it has no __new__ either
            takes_none = original_new is object.__new__ and made.__init__ is not object.__init__
            part = original_new(made) if takes_none else original_new(made, *args, **kwargs)
            origins._note_part(part, sys._getframe(1))
            return part

        cls.__new__ = staticmethod(__new__)
        self._noting.append(vars(cls)["__new__"])

    def _note_part(self, part: object, frame: FrameType) -> None:
        place = own_location(frame)
        with suppress(TypeError):  # it cannot be referred to weakly: its line stays unknown
            if place is not None:
                self._parts[id(part)] = (weakref.ref(part), place)

    def part_made_at(self, part: object) -> Location | None:
        """The line that made a metric, loss or other part. A metric may be known as a layer, which it is in Keras 2."""
        reference, place = self._parts.get(id(part), (None, None))
        return place if reference is not None and reference() is part else self._made_at_as_layer(part)

    def _made_at_as_layer(self, part: object) -> Location | None:
        try:
            return self._made.get(part)
        except TypeError:  # no layer: it has no hash, or no weak references
            return None

    def install_operations(self, operation_class: type, layer_class: type) -> None:
        """Keras 3 makes an operation of its own for each function that is called with its symbolic tensors. Noted are
        those that the user's own line calls, not what a library's model is made of."""
        original_new: Callable[..., KerasLayer] = operation_class.__new__
        origins = self

        @functools.wraps(original_new)
        def __new__(cls: type, *args: object, **kwargs: object) -> KerasLayer:
            operation = original_new(cls, *args, **kwargs)
            called = called_by_line(sys._getframe(1))
            if not issubclass(cls, layer_class) and called is not None and _IS_FUNCTION(called.co_filename):
                origins._note_birth(operation, sys._getframe(1))
            return operation

        operation_class.__new__ = __new__  # type: ignore[method-assign, assignment]

    def install_policies(self, layer_class: type) -> None:
        """Note what sets the policy of a layer that exists. Keras 2 lets nobody do that."""
        policy = vars(layer_class).get("dtype_policy")
        if not isinstance(policy, property) or policy.fset is None:
            return
        read, write = policy.fget, policy.fset

        def dtype_policy(layer: KerasLayer, value: object) -> None:
            before = policy_name(layer)
            write(layer, value)
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_name == "__setattr__":  # Keras' own
                frame = frame.f_back
            place = own_location(frame) if frame is not None and own_code(frame) else None
            if place is not None:
                self._policies.setdefault(layer, (before, place))

        layer_class.dtype_policy = property(read, dtype_policy, policy.fdel, policy.__doc__)  # type: ignore[attr-defined]

    def made_at(self, layer: KerasLayer) -> Location | None:
        return self._made.get(layer)

    def given_dtype(self, layer: KerasLayer, policy: str) -> bool:
        """Whether the layer was given a dtype or a policy of its own: by whoever made it, or by the program's class of
        it, so that its policy is not the global policy of that moment."""
        return layer in self._given_dtype or self._global_then.get(layer, policy) != policy

    def made_before_policy(self, layer: KerasLayer) -> bool:
        """Whether the program had not set a global policy yet."""
        return layer in self._before_policy

    def made_by(self, layer: KerasLayer) -> str:
        """The library's function that the user's line called, and that made it; "" where the line itself did. "call"
        where the `call` of a library's layer makes it, each time."""
        code = self._made_by.get(layer)
        return "" if code is None else code.co_name.replace(OF_COPY, "")

    def activation_argument(self, layer: KerasLayer) -> str:
        """The argument by which that function takes the activation of the model's output; "" where it names none."""
        code = self._made_by.get(layer)
        if code is None:
            return ""
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        of_application = ("classifier_activation",) if _IS_APPLICATION(code.co_filename) else ()
        return next((name for name in _OUTPUT_ACTIVATIONS if name in (*named, *of_application)), "")

    def policy_before(self, layer: KerasLayer) -> tuple[str, Location] | None:
        """The policy that the layer had before a line of the user's changed it, and that line."""
        return self._policies.get(layer)

    def _note_birth(self, layer: KerasLayer, frame: FrameType) -> None:
        place = own_location(frame)
        if place is None:
            return
        self._made.setdefault(layer, place)
        called = call_of_librarys_layer(frame) or called_by_line(frame)
        if called is not None:
            self._made_by.setdefault(layer, called)

    def _note_dtype(self, layer: KerasLayer, given: dict[str, object], global_policy: Callable[[], str]) -> None:
        if any(given.get(name) is not None for name in ("dtype", "dtype_policy")):
            self._given_dtype[layer] = True
        elif class_location(type(layer)) is not None:
            self._global_then[layer] = global_policy()


def policy_name(layer: KerasLayer) -> str:
    policy = getattr(layer, "dtype_policy", None)
    return str(getattr(policy, "name", policy))
