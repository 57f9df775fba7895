"""Parses TOML once for everybody: a project's settings and its pins are in one pyproject.toml."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

# `a.b.c = 1`, `[a.b.c]`: the time that Python takes grows with the square of the names (a minute for 200 kB).
_MOST_NAMES = 100
_LARGEST = 8 * 2**20  # characters, which take half a minute; the locks of a large project have one or two million
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'""")
_LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{_MOST_NAMES}}}")


@lru_cache(maxsize=4)
def table_from_toml(text: str) -> Mapping[str, Any]:
    """The table in a TOML text. Raises ValueError for what is none (or a number of more digits than Python reads), and
    RecursionError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if len(text) > _LARGEST:
        raise ValueError(f"it holds more than {_LARGEST:,} characters")
    if any(_LONG_KEY.search(_QUOTED.sub("x", line)) for line in text.split("\n") if line.count(".") >= _MOST_NAMES):
        raise RecursionError
    return tomllib.loads(text)
