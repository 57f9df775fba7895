"""How many processes walk the files, and how one is started that imports nothing from the working directory."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

# A forked process has imported already what it needs. macOS and Windows know only one that begins anew, as `python -c`,
# whose first place for modules is the working directory, unless PYTHONSAFEPATH says otherwise.
FORKS = sys.platform not in ("darwin", "win32")
SAFE_PATH = "PYTHONSAFEPATH"  # since Python 3.11


def most_processes() -> int:
    """How many processes may run at once: 1 where another one could import what lies in the working directory."""
    heeds_variable = sys.version_info >= (3, 11) and not sys.flags.ignore_environment
    if FORKS or sys.flags.isolated or heeds_variable:
        return os.cpu_count() or 1
    return 1


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """While this context is active, Python processes start with PYTHONSAFEPATH: without the working directory on their
    path. The user's own program, which starts later, does not."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
