"""Finds programs by their names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def program_on_path(name: str) -> Path | None:
    """The program of this name in a folder of PATH; never one of the working directory, for which an empty entry stands
    and where Windows looks first, whatever PATH says: that may be a stranger's."""
    endings = ["", *os.environ.get("PATHEXT", "").split(os.pathsep)] if os.name == "nt" else [""]
    folders = [Path(folder) for folder in os.get_exec_path() if os.path.isabs(folder)]  # noqa: PTH117 - "" is none
    places = (folder / f"{name}{ending}" for folder in folders for ending in endings)
    return next((place for place in places if shutil.which(place)), None)
