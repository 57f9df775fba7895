"""The copy of a saved model that Keras is given to load: it holds what was judged and nothing else.

A copy has one configuration in one form, the weights and the assets of the model, and no data of other files. A large
file is not copied where no reader could find a second form in it: Keras then gets a link to the file that is open.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
import zipfile
from typing import Any, BinaryIO, Iterator

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.archives import (
    CONFIGURATION,
    HARMLESS,
    LARGEST_COPY,
    LARGEST_GROWTH,
    LET_THROUGH,
    METADATA,
    SAVE_AGAIN,
    SavedFile,
    packed_and_unpacked,
    start_of_member,
)
from mpdoctor.examiner.saved.hdf5_files import DAMAGE, problems_of_storage, signatures_of_hdf5

WEIGHTS = "model.weights.h5"
WEIGHTS_AS_ARRAYS = "model.weights.npz"
ASSETS = "assets/"
BEGINNING = b"PK\x03\x04"  # of an archive that holds something
HDF5_PARTS = ("model_weights", "optimizer_weights")
HDF5_TEXTS = ("keras_version", "backend")


def path_to_load(saved: SavedFile, scratch: str) -> str:
    """The path of a file in the directory `scratch` that holds the model as it was judged.

    Raises Unusable where the weights are no plain data of the file."""
    assert saved.file is not None
    path, size = os.path.join(scratch, saved.name), os.fstat(saved.file.fileno()).st_size
    try:
        if saved.form == "hdf5":
            _check_hdf5(saved.file, size, saved.name)
            if not _link(saved.file, path, is_only_form=not _may_be_archive(saved.file)):
                _copy_hdf5(saved, path)
        else:
            with zipfile.ZipFile(saved.file) as archive:
                if WEIGHTS in archive.namelist():
                    with _opened(WEIGHTS, archive, saved.file, scratch) as weights:
                        _check_hdf5(weights, size, saved.name)
                if WEIGHTS_AS_ARRAYS in archive.namelist():
                    packed = _opened(WEIGHTS_AS_ARRAYS, archive, saved.file, scratch)
                    with packed, zipfile.ZipFile(packed) as arrays:
                        _refuse_other_beginning(packed, saved.name)
                        _refuse_arrays_that_grow(arrays, size, saved.name)
                        _refuse_pickles(arrays, saved.name)
                if not _link(saved.file, path, is_only_form=not signatures_of_hdf5(saved.file)):
                    _copy_archive(saved, archive, path)
    except (zipfile.BadZipFile, *LET_THROUGH, *DAMAGE) as error:
        raise Unusable(f"{saved.name} is damaged: {error}. {SAVE_AGAIN}") from None
    return path


def _link(file: BinaryIO, path: str, is_only_form: bool) -> bool:
    """Make a link to an open file that is too large to copy; False where a copy is wanted."""
    opened = f"/proc/self/fd/{file.fileno()}"
    if os.fstat(file.fileno()).st_size <= LARGEST_COPY or not is_only_form or not os.path.exists(opened):
        return False
    os.symlink(opened, path)
    return True


def _check_hdf5(file: BinaryIO, size: int, name: str) -> None:
    import h5py

    try:
        with h5py.File(file, "r") as opened:
            problem = next(problems_of_storage(opened, size, file), None)
    except DAMAGE as error:
        raise Unusable(f"{name} is damaged: HDF5 says {str(error)!r}. {SAVE_AGAIN}") from None
    if problem is not None:
        raise Unusable(
            f"{name} was not loaded: its weights are not plain numbers in the file itself, it holds {problem}. "
            f"{SAVE_AGAIN}"
        )


# --- HDF5 -----------------------------------------------------------------------------------------------------------
def _may_be_archive(file: BinaryIO) -> bool:
    is_archive = zipfile.is_zipfile(file)
    file.seek(0)
    return is_archive


def _copy_hdf5(saved: SavedFile, path: str) -> None:
    import h5py

    with h5py.File(saved.file, "r") as source, h5py.File(path, "w") as copy:
        for part in HDF5_PARTS:
            if part in source:
                source.copy(part, copy)
        for key in HDF5_TEXTS:
            if key in source.attrs:
                copy.attrs[key] = source.attrs[key]
        copy.attrs["model_config"] = _encoded(saved.configuration)
        if saved.training is not None:
            copy.attrs["training_config"] = _encoded(saved.training)


def _encoded(configuration: Any) -> bytes:
    return json.dumps(configuration).encode("ascii")


# --- .keras ---------------------------------------------------------------------------------------------------------
def _copy_archive(saved: SavedFile, archive: zipfile.ZipFile, path: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as copy:
        for name in _members(archive):  # the weights first, where no reader looks for HDF5
            with archive.open(name) as source, copy.open(name, "w", force_zip64=True) as target:
                while chunk := source.read(2**20):
                    target.write(chunk)
        if METADATA in archive.namelist():
            copy.writestr(METADATA, archive.read(METADATA))
        copy.writestr(CONFIGURATION, _encoded(saved.configuration))


def _members(archive: zipfile.ZipFile) -> Iterator[str]:
    """The weights, and the assets that lie where Keras looks for them."""
    names = archive.namelist()
    yield from (name for name in (WEIGHTS, WEIGHTS_AS_ARRAYS) if name in names)
    for name in names:
        steps = name.split("/")
        if name.startswith(ASSETS) and "\\" not in name and not {"", ".", ".."} & set(steps):
            yield name


def _opened(member: str, archive: zipfile.ZipFile, file: BinaryIO, scratch: str) -> Any:
    """A member as an open file in which a reader may go back: where it lies in the archive as it is, a window on it;
    else unpacked into `scratch`, because each step back in a compressed one unpacks it from its start."""
    info = archive.getinfo(member)
    with archive.open(info) as packed:  # checks the member's own header
        if info.compress_type == zipfile.ZIP_STORED:
            return io.BufferedReader(_Window(file, start_of_member(file, info), info.file_size))
        unpacked = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 - closed by who asked for it
        shutil.copyfileobj(packed, unpacked, 2**20)
    unpacked.seek(0)
    return unpacked


class _Window(io.RawIOBase):
    """A part of an open file as a file of its own, to read."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file, self._start, self._size, self._place = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = origin + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        wanted = max(0, min(len(buffer), self._size - self._place))
        self._file.seek(self._start + self._place)
        chunk = self._file.read(wanted)
        buffer[: len(chunk)] = chunk
        self._place += len(chunk)
        return len(chunk)


def _refuse_other_beginning(packed: Any, name: str) -> None:
    """zipfile finds an archive from its end; NumPy takes what does not begin like one for a pickle."""
    packed.seek(0)
    if packed.read(len(BEGINNING)) != BEGINNING:
        raise Unusable(f"{name} was not loaded: its weights begin with something else than arrays. {SAVE_AGAIN}")


def _refuse_arrays_that_grow(arrays: zipfile.ZipFile, size: int, name: str) -> None:
    """Arrays of NumPy are an archive in the archive, which may unpack to any size."""
    packed, unpacked = packed_and_unpacked(arrays, size)
    if unpacked > HARMLESS and unpacked > LARGEST_GROWTH * max(packed, 1):
        raise Unusable(
            f"{name} holds weights that unpack to {unpacked / 2**30:.0f} GiB, so it was not opened. {SAVE_AGAIN}"
        )


def _refuse_pickles(arrays: zipfile.ZipFile, name: str) -> None:
    """Arrays of Python objects are pickles, which run whatever they name; Keras before 3 unpickles them (2.15)."""
    for key in arrays.namelist():
        with arrays.open(key) as array:
            if not _is_of_numbers(array):
                raise Unusable(f"{name} was not loaded: its weights hold {key}, no array of numbers. {SAVE_AGAIN}")


def _is_of_numbers(file: Any) -> bool:
    from numpy.lib import format as arrays

    readers = {(1, 0): arrays.read_array_header_1_0, (2, 0): arrays.read_array_header_2_0}
    try:
        return not readers[arrays.read_magic(file)](file)[2].hasobject
    except (ValueError, KeyError):
        return False
