"""Names of files by patterns as the shell has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import cache


@cache
def any_of(patterns: tuple[str, ...]) -> Callable[[str], object]:
    """Whether a name is one of these patterns, which most names are to the letter."""
    names = {pattern for pattern in patterns if not set(pattern) & set("*?[")}
    wild = [translate(pattern) for pattern in patterns if pattern not in names]
    fits = re.compile("|".join(wild)).match if wild else names.__contains__
    return lambda name: name in names or fits(name)
