"""The private directory of one run, and how a later run knows one that a killed run left behind.

Its name says whose it is, and the run that made it holds a lock on it while it lives. The system takes the lock from a
process that dies, however it dies: what nobody holds is stale.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":  # there the temporary directory is the user's own, and what is stale in it stays
    import fcntl

_PREFIX = f"mpdoctor-{os.getuid() if hasattr(os, 'getuid') else 'run'}-"
_NAME = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")  # as mkdtemp makes them


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """A new directory below the system's temporary one that this user alone can enter; it is gone afterwards. Those
    that killed runs of this user's left there are removed first.

    Raises OSError where none can be made."""
    _remove_stale(Path(tempfile.gettempdir()))
    folder, lock = _new_locked()
    try:
        yield folder
    finally:
        _remove(folder)
        if lock is not None:
            os.close(lock)


def _new_locked() -> tuple[Path, int | None]:
    """A directory and the descriptor that holds its lock; None where there are no locks."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        if sys.platform == "win32":
            return folder, None
        try:
            lock = _lock_of(folder)
        except (BlockingIOError, FileNotFoundError):  # another run came between and takes it for stale
            continue
        except OSError:  # a file system without locks: nobody can take it for stale
            return folder, None
        if folder.exists():
            return folder, lock
        os.close(lock)


def _lock_of(folder: Path) -> int:
    """A descriptor that holds the lock of a directory. Raises BlockingIOError where a living run holds it, and another
    OSError where it is no directory or cannot be locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _remove_stale(place: Path) -> None:
    """Remove the directories of killed runs. Those that cannot be listed, locked or removed stay, and do no harm."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        for path in place.iterdir():
            if _NAME.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    _remove_if_stale(path)


def _remove_if_stale(folder: Path) -> None:
    if not _is_own(folder.lstat()):  # not even opened: it may be a pipe, or on a disk that does not answer
        return
    lock = _lock_of(folder)
    try:
        if _is_own(os.fstat(lock)):
            _remove(folder)
    finally:
        os.close(lock)


def _is_own(known: os.stat_result) -> bool:
    return stat.S_ISDIR(known.st_mode) and known.st_uid == os.geteuid()


def _remove(folder: Path) -> None:
    """Remove a folder with its contents, also where a script has taken its own permissions away. No link is followed; a
    tree nested too deeply to be walked stays."""
    with contextlib.suppress(RecursionError):
        _permit(folder)
        for root, names, _ in os.walk(folder):
            for name in names:
                _permit(Path(root, name))
        shutil.rmtree(folder, ignore_errors=True)


def _permit(folder: Path) -> None:
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(stat.S_IRWXU)
