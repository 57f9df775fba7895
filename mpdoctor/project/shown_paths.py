"""How reports show paths."""

from __future__ import annotations

import os


def shown_path(path: str) -> str:
    """Relative to the working directory where the path lies below it; else as it was given, normalized."""
    relative = os.path.relpath(path)
    leads_out = relative == os.pardir or relative.startswith(os.pardir + os.sep)  # "..x.py" is a name
    return os.path.normpath(path) if leads_out else relative
