"""A reader of the .npz and .npy files in which LossScaleMonitor keeps a failing batch: numeric arrays only.

Anybody may have written the file. Nothing is unpickled or evaluated, and before any data is read, the size that an
array's header claims must equal the size of its member."""

from __future__ import annotations

import math
import os
import re
import stat
import zipfile
from typing import IO

import numpy as np

# As LossScaleMonitor names them: leaves of the batch by their place, weights by the model's number and their place.
_MEMBER = re.compile(r"(batch_\d{1,6}|weight_\d{1,6}_\d{1,6})\.npy")
_HEADER = re.compile(
    rb"\{'descr': '([<>|](?:b1|[iu][1248]|f[248]|c8|c16))', 'fortran_order': (True|False), "
    rb"'shape': \((|\d{1,12},|(?:\d{1,12}, ){1,31}\d{1,12})\), \} *\n"
)
_MAGIC = b"\x93NUMPY\x01\x00"
_LONGEST_HEADER = 1024
_LARGEST = (1 << 32) + (1 << 28)  # bytes: LossScaleMonitor keeps 4 GiB of numbers at most
_MOST_ARRAYS = 100_000
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class NotKeptArrays(Exception):
    """The file is none that LossScaleMonitor wrote. Says why, in a sentence without a subject and a full stop."""


def arrays_from_file(path: str) -> dict[str, np.ndarray]:
    """The arrays by the names that LossScaleMonitor gave them. Raises NotKeptArrays, OSError."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # a device may act on being opened
        raise NotKeptArrays("is no regular file")
    with os.fdopen(os.open(path, _READING), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            raise NotKeptArrays(f"is no regular file of at most {_LARGEST >> 20:,} MB")
        try:
            with zipfile.ZipFile(file) as archive:
                return _arrays(archive, status.st_size)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, ValueError) as error:
            raise NotKeptArrays(f"is damaged: {error}") from error


def _arrays(archive: zipfile.ZipFile, size: int) -> dict[str, np.ndarray]:
    members = archive.infolist()
    names = {member.filename for member in members}
    if len(members) > _MOST_ARRAYS or len(names) != len(members):
        raise NotKeptArrays("holds arrays that no training has")
    for member in members:
        if not _MEMBER.fullmatch(member.filename) or member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            raise NotKeptArrays(f"holds {member.filename[:80]!r}, which is no array as LossScaleMonitor keeps it")
    # members that lie over each other would make much of little
    if any(member.file_size != member.compress_size for member in members) or sum(m.file_size for m in members) > size:
        raise NotKeptArrays("says that it holds more than it does")
    arrays = {}
    for member in members:
        with archive.open(member) as file:
            arrays[member.filename[: -len(".npy")]] = _array(file, member.file_size)
    return arrays


def _array(file: IO[bytes], size: int) -> np.ndarray:
    start = file.read(len(_MAGIC) + 2)
    length = int.from_bytes(start[len(_MAGIC) :], "little")
    header = file.read(length) if start.startswith(_MAGIC) and length <= _LONGEST_HEADER else b""
    match = _HEADER.fullmatch(header)
    if match is None:
        raise NotKeptArrays("holds an array that is none of numbers, or of another format than numpy.savez writes")
    dtype = np.dtype(match[1].decode())
    shape = tuple(int(extent) for extent in re.findall(rb"\d+", match[3]))
    if math.prod(shape) * dtype.itemsize != size - len(start) - len(header):
        raise NotKeptArrays("holds an array of another length than it says")
    return np.frombuffer(file.read(), dtype).reshape(shape, order="F" if match[2] == b"True" else "C")
