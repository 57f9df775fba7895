"""Parses TOML once for everybody: a project's settings and its pins are in one pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=4)
def table_from_toml(text: str) -> Mapping[str, Any]:
    """Raises ValueError for what is none (or a number of more digits than Python reads), and RecursionError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)
