"""How reports show paths."""

from __future__ import annotations

import os


def shown_path(path: str) -> str:
    """The path relative to the working directory where it lies below that; else normalized, as it was given."""
    relative = os.path.relpath(path)
    leads_out = relative == os.pardir or relative.startswith(os.pardir + os.sep)  # "..x.py" is a name
    return os.path.normpath(path) if leads_out else relative
