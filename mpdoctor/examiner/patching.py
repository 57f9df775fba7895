"""Methods of Keras and TensorFlow, replaced."""

from __future__ import annotations

import functools
from typing import Any, Callable


def replace_method(cls: type, name: str, method: Callable[..., Any]) -> None:
    """Put `method(original, self, *args, **kwargs)` in the place of a method. functools.wraps keeps its module, by
    which autograph knows what not to convert."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def replacement(instance: Any, *args: Any, **kwargs: Any) -> Any:
        return method(original, instance, *args, **kwargs)

    setattr(cls, name, replacement)
