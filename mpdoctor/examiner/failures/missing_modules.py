"""Where a module lies that a program could not import: in the project around the file, but not on sys.path."""

from __future__ import annotations

import os

SOURCE_FOLDERS = ("", "src", "lib", "python")  # in which projects keep their packages
ENDS_PROJECT = (".git", "pyproject.toml", "setup.py", "setup.cfg")
MOST_LEVELS = 6


def folder_of_missing_module(error: BaseException, importer: str) -> str:
    """The folder that PYTHONPATH would have to name for this import, of the file `importer`, to find its package; ""
    where the project has none of that name."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    top = error.name.partition(".")[0]
    folder = os.path.dirname(os.path.abspath(importer))
    for _ in range(MOST_LEVELS):
        for source in SOURCE_FOLDERS:
            candidate = os.path.join(folder, source) if source else folder
            if _holds_module(candidate, top):
                return candidate
        above = os.path.dirname(folder)
        if above == folder or any(os.path.exists(os.path.join(folder, name)) for name in ENDS_PROJECT):
            return ""
        folder = above
    return ""


def _holds_module(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    if os.path.isfile(path + ".py"):
        return True
    try:
        return any(entry.endswith(".py") for entry in os.listdir(path))
    except OSError:
        return False
