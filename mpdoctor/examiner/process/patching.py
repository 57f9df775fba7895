"""Monkey-patches of Keras and TensorFlow methods, for good or for a `with` block."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Callable


def replace_method(cls: type, name: str, method: Callable[..., object]) -> None:
    """Put `method(original, self, *args, **kwargs)` in the place of a method. functools.wraps keeps its module, by
    which autograph knows what not to convert."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def replacement(instance: object, *args: object, **kwargs: object) -> object:
        return method(original, instance, *args, **kwargs)

    setattr(cls, name, replacement)


def replace_for_now(cls: type | ModuleType, name: str, method: Callable[..., object]) -> Callable[[], None]:
    """Like `replace_method`, until the returned function is called. For steps that run eagerly: no autograph, nothing
    traced."""
    own, called = cls.__dict__.get(name), getattr(cls, name)
    setattr(cls, name, lambda instance, *args, **kwargs: method(called, instance, *args, **kwargs))
    return lambda: delattr(cls, name) if own is None else setattr(cls, name, own)
