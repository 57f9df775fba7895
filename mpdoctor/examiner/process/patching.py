"""Methods of Keras and TensorFlow, replaced."""

from __future__ import annotations

import functools
from typing import Any, Callable


def replace_method(cls: type, name: str, method: Callable[..., Any]) -> None:
    """Put `method(original, self, *args, **kwargs)` in the place of a method. functools.wraps keeps its module, by
    which autograph knows what not to convert."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def replacement(instance: Any, *args: object, **kwargs: object) -> Any:
        return method(original, instance, *args, **kwargs)

    setattr(cls, name, replacement)


def replace_for_now(cls: type, name: str, method: Callable[..., Any]) -> Callable[[], None]:
    """The same until what is returned is called. For steps that run eagerly: no autograph, nothing traced."""
    own, called = cls.__dict__.get(name), getattr(cls, name)
    setattr(cls, name, lambda instance, *args, **kwargs: method(called, instance, *args, **kwargs))
    return lambda: delattr(cls, name) if own is None else setattr(cls, name, own)
