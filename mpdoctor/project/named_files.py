"""Writes the files that the user names: reports and baselines."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from mpdoctor.project.project_folder import LEADS_OUT, is_in_project, project_around
from mpdoctor.project.regular_files import READING

_WRITING = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | (READING & ~os.O_RDONLY)


def write_text(path: Path | str, text: str, errors: str = "strict") -> None:
    """Puts the text into the file, in UTF-8, in the place of what it held.

    Raises OSError, also for a named pipe that nobody reads, and for a link that a project brings along and that leads
    out of it: the user has named a file of the project, and not one of their own."""
    if _leads_out(os.path.abspath(path)):
        raise OSError(errno.ELOOP, f"it is {LEADS_OUT}")
    descriptor = os.open(path, _WRITING, 0o666)
    with open(descriptor, "w", encoding="utf-8", errors=errors, newline="\n") as file:
        if hasattr(os, "set_blocking"):
            os.set_blocking(descriptor, True)
        file.write(text)


def _leads_out(path: str) -> bool:
    """Whether the last part of a path is a link in the project around the working directory, to what is none of it. A
    device keeps nothing that could be lost."""
    folder = os.path.dirname(path)
    around = project_around(os.getcwd())
    is_of_project = Path(os.path.realpath(folder)).is_relative_to(around)
    return is_of_project and os.path.islink(path) and not is_in_project(path, folder) and not _is_device(path)


def _is_device(path: str) -> bool:
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)
    except OSError:
        return False
