"""File names that match patterns of the shell."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import cache


@cache
def any_of(patterns: tuple[str, ...]) -> Callable[[str], object]:
    """A function that tells whether a name matches one of these patterns, most of which are plain names."""
    names = {pattern for pattern in patterns if not set(pattern) & set("*?[")}
    wild = [translate(pattern) for pattern in patterns if pattern not in names]
    fits = re.compile("|".join(wild)).match if wild else names.__contains__
    return lambda name: name in names or fits(name)
