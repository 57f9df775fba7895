"""Files that only this user's mpdoctor can have written: each is signed, and the key lies apart from them.

Whoever can put files into the directory, as a CI does that restores a shared cache, can sign none. A file, a directory
or a key that belongs to somebody else, or that others may write, is none.
"""

from __future__ import annotations

import hmac
import os
import stat
from pathlib import Path

from mpdoctor.project.file_owners import belongs_to_user_or_system, is_own
from mpdoctor.project.regular_files import NOT_THROUGH_LINKS, READING, bytes_from_descriptor

LARGEST = 64 * 2**20  # bytes
KEY_SIZE = 32  # bytes
_SIGNATURE = "sha256"
_SIGNATURE_SIZE = 32  # bytes
_READABLE_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH
_WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOT_THROUGH_LINKS | getattr(os, "O_BINARY", 0)


class Key:
    """Read when it is asked for; made when something is signed and there is none."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def find(self) -> bytes | None:
        if not is_own_directory(self._file.parent):
            return None
        content = _own_bytes(self._file, KEY_SIZE, secret=True)
        return content if content is not None and len(content) == KEY_SIZE else None

    def find_or_make(self) -> bytes | None:
        """The key, made where there is none. Of two runs that make one at once, the later one's stays; files that the
        other signed are then invalid.

        Raises OSError where it can't be written."""
        key = self.find()
        if key is None and make_own_directory(self._file.parent) and _is_own_or_missing(self._file):
            write_own_file(self._file, os.urandom(KEY_SIZE))
            key = self.find()
        return key


def signed_bytes(file: Path, key: bytes, purpose: str) -> bytes | None:
    """The content that was signed with this key, for this purpose, under this name; None where there is none."""
    if not is_own_directory(file.parent):
        return None
    content = _own_bytes(file, LARGEST)
    if content is None:
        return None
    signature, signed = content[:_SIGNATURE_SIZE], content[_SIGNATURE_SIZE:]
    return signed if hmac.compare_digest(signature, _signature(file, key, purpose, signed)) else None


def write_signed(file: Path, key: bytes, purpose: str, content: bytes) -> None:
    """Write the content with its signature. Raises OSError where it can't be written."""
    if len(content) <= LARGEST - _SIGNATURE_SIZE and make_own_directory(file.parent):
        write_own_file(file, _signature(file, key, purpose, content) + content)


def is_own_directory(directory: Path) -> bool:
    """Whether it is a directory of the user's own; a link is none, wherever it leads."""
    try:
        status = directory.lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and is_own(status, directory)


def make_own_directory(directory: Path) -> bool:
    """Whether it is there, and the user's own. Nothing is made in a home that belongs to somebody else: with the
    administrator's rights that would lock out its user.

    Raises OSError."""
    above = next((folder for folder in (directory, *directory.parents) if folder.exists()), directory)
    if not belongs_to_user_or_system(above.stat()):
        return False
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return is_own_directory(directory)


def write_own_file(file: Path, content: bytes) -> None:
    """Whole or not at all, through a new file that nobody else can have made.

    Raises OSError."""
    new = file.with_name(f"{file.stem}.{os.urandom(8).hex()}.new")
    descriptor = os.open(new, _WRITING, 0o600)
    try:
        with open(descriptor, "wb") as opened:  # noqa: PTH123 - a descriptor is no path
            opened.write(content)
        new.replace(file)
    except BaseException:  # whatever stops it
        new.unlink(missing_ok=True)
        raise


def _is_own_or_missing(file: Path) -> bool:
    try:
        status = file.lstat()
    except FileNotFoundError:
        return True
    return stat.S_ISREG(status.st_mode) and is_own(status, file)


def _own_bytes(file: Path, largest: int, secret: bool = False) -> bytes | None:
    try:
        descriptor = os.open(file, READING | NOT_THROUGH_LINKS)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        is_open_to_others = secret and os.name == "posix" and bool(status.st_mode & _READABLE_BY_OTHERS)
        if not is_own(status, file) or is_open_to_others:
            return None
        return bytes_from_descriptor(descriptor, largest)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _signature(file: Path, key: bytes, purpose: str, content: bytes) -> bytes:
    about = f"{file.name}\0{purpose}\0".encode(errors="surrogatepass")
    return hmac.digest(key, about + content, _SIGNATURE)
