"""Paths as a report shows them."""

from __future__ import annotations

import os
from pathlib import Path


def shown_path(path: str) -> str:
    """Relative to the working directory where the path lies below it; else as it was given, normalized."""
    relative = os.path.relpath(path)
    return os.path.normpath(path) if Path(relative).parts[:1] == ("..",) else relative  # "..x.py" is a name
