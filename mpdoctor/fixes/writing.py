"""Atomic writes: a reader of a file finds the old text or the new one, and never half of it."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from mpdoctor.project.file_owners import extended_attributes
from mpdoctor.project.regular_files import bytes_from_file


class Changed(Exception):
    """The file is not what it was when it was read."""


def write_over(path: Path, before: bytes, after: bytes) -> None:
    """Write `after` into a file that still holds `before`; nothing where it holds `after` already, as the second name
    of a file that was just written does. Its mode, group and extended attributes stay; a link stays a link, and the
    file that it leads to is written.

    Raises Changed, OSError."""
    real = Path(os.path.realpath(path))
    now = bytes_from_file(real)
    if now == after:
        return
    if now != before:
        raise Changed
    status = real.stat()
    # a second name of the file, or another owner, would be lost with a new file in its place
    if status.st_nlink > 1 or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
        _write_into(real, after)
        return
    if not os.access(real, os.W_OK):
        raise PermissionError(13, "it is read-only")
    descriptor, name = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        is_alike = _made_alike(name, real, status)
        if bytes_from_file(real) != before:
            raise Changed
        if is_alike:
            Path(name).replace(real)
        else:
            _write_into(real, after)
            Path(name).unlink()
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write_into(path: Path, content: bytes) -> None:
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def _made_alike(new: str, old: Path, status: os.stat_result) -> bool:
    """Give a new file the group, the extended attributes (access lists among them) and the mode of the old one; whether
    this user may."""
    try:
        if hasattr(os, "chown") and os.stat(new).st_gid != status.st_gid:  # noqa: PTH116 - `new` is a str
            os.chown(new, -1, status.st_gid)
        for name in extended_attributes(old):
            os.setxattr(new, name, os.getxattr(old, name))
        Path(new).chmod(stat.S_IMODE(status.st_mode))  # last: a change of the group takes the set-id bits away
    except OSError:
        return False
    return True
