"""Reading files that another user may have put there, only regular ones. Never waits for whoever is at the other end of
a pipe."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 256 * 2**20  # bytes: a sparse file may claim to hold more than any memory
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
# Opening a pipe waits for who writes to it; what a system does not have it does not need.
READING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
NOT_THROUGH_LINKS = getattr(os, "O_NOFOLLOW", 0)


def bytes_from_file(path: Path | str, largest: int = LARGEST) -> bytes:
    """The contents of a regular file.

    Raises OSError also for a pipe, a device or a directory, for a file that the system makes up while it is read
    (procfs), and for more than `largest` bytes."""
    _refuse_all_but_regular(os.stat(path))  # noqa: PTH116 - a device may act on being opened
    descriptor = os.open(path, READING)
    try:
        return bytes_from_descriptor(descriptor, largest)
    finally:
        os.close(descriptor)


def bytes_from_descriptor(descriptor: int, largest: int = LARGEST) -> bytes:
    """Like `bytes_from_file`, for a descriptor that is open already."""
    status = os.fstat(descriptor)
    _refuse_all_but_regular(status)
    parts, size = [], 0
    while size <= largest >= status.st_size and (chunk := os.read(descriptor, max(status.st_size, 4095) + 1)):
        parts.append(chunk)
        size += len(chunk)
    if max(size, status.st_size) > largest:
        raise OSError(errno.EFBIG, f"it holds more than {largest} bytes")
    if size and not os.fstat(descriptor).st_size:
        raise OSError(errno.EINVAL, "it is no file on a disk: the system makes up what it holds")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _refuse_all_but_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, and no regular file")
