"""What the user pointed at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """One thing to examine.

    id
        The text as the user wrote it.
    kind
        "script" (model.py), "factory" (model.py:build_model, pkg.mod:factory), "keras-file" (model.keras),
        "directory" (every .py below it, source only), "stdin" (source only).
    path
        The file or directory; None for a factory named by module (pkg.mod:factory) and for stdin.
    module, factory
        Of a factory: the module's dotted name where it was named so, and the function's name.
    """

    id: str
    kind: str
    path: Path | None = None
    module: str | None = None
    factory: str | None = None
