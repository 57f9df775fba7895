"""A saved model written anew with another configuration: all else in the file is as it was, byte for byte.

Nothing of TensorFlow is needed for it. HDF5 is written by h5py, which a plain installation of mpdoctor lacks.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.archives import CONFIGURATION, DAMAGED_LZMA, SAVE_AGAIN, SavedFile
from mpdoctor.examiner.saved.hdf5_files import SIGNATURE, problems_of_storage

AT_ONCE = 2**20  # bytes
STATE = "optimizer_weights"  # the group of HDF5 that holds them
MISSING = (
    "is an HDF5 file, and h5py, which reads and writes these, is missing where mpdoctor is installed: "
    "pip install 'mpdoctor[h5]', or save the model as .keras"
)


def write_copy(saved: SavedFile, configuration: Any, training: Any, path: Path, drops_state: bool = False) -> None:
    """A new file at `path` with this configuration, and with what HDF5 keeps apart of how the model was compiled.
    `drops_state`: HDF5 keeps that of the optimizer no more, which Keras would take for another optimizer's by its order
    (measured: under Keras 3.15 the learning rate became 0).

    Raises Unusable for a file that holds what no saved model does, OSError where it can't be written."""
    if saved.form == "hdf5":
        _write_hdf5(saved, {"model_config": configuration, "training_config": training}, path, drops_state)
        return
    assert saved.file is not None
    try:
        with zipfile.ZipFile(saved.file) as archive:
            _refuse_members(archive, saved.name)
            _write_archive(archive, configuration, path)
    except (zipfile.BadZipFile, zlib.error, DAMAGED_LZMA, EOFError, NotImplementedError, RuntimeError) as error:
        raise Unusable(f"{saved.name} is damaged: {error}. {SAVE_AGAIN}") from None


def refuse_unreadable(path: Path) -> None:
    """Refuse a file that cannot be read here. Raises Unusable for HDF5 where h5py is missing."""
    try:
        with path.open("rb") as file:
            is_hdf5 = file.read(len(SIGNATURE)) == SIGNATURE
    except OSError as error:
        raise Unusable(f"{path.name} can't be read: {error.strerror}.") from None
    if is_hdf5 and importlib.util.find_spec("h5py") is None:
        raise Unusable(f"{path.name} {MISSING}.")


def put_in_place(written: Path, output: Path) -> None:
    """The new file under its own name, whole or not at all, and never in the place of another one.

    Raises FileExistsError, OSError."""
    try:
        os.link(written, output)
    except FileExistsError:
        raise
    except OSError:  # a file system without second names
        with output.open("xb"):  # from now on the name is ours
            pass
        try:
            written.replace(output)
        except OSError:
            output.unlink()
            raise


# --- .keras ---------------------------------------------------------------------------------------------------------
def _refuse_members(archive: zipfile.ZipFile, name: str) -> None:
    for info in archive.infolist():
        steps = PurePosixPath(info.filename).parts
        climbs = ".." in steps or info.filename.startswith("/") or "\\" in info.filename or ":" in info.filename
        if climbs or not steps:
            raise Unusable(f"{name} holds {info.filename!r}, which leads out of the archive. {SAVE_AGAIN}")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise Unusable(f"{name} holds {info.filename!r}, a link and no file. {SAVE_AGAIN}")


def _write_archive(archive: zipfile.ZipFile, configuration: Any, path: Path) -> None:
    with zipfile.ZipFile(path, "x", allowZip64=True) as copy:
        copy.comment = archive.comment
        for info in archive.infolist():
            if info.filename == CONFIGURATION:
                copy.writestr(_header_like(info), json.dumps(configuration).encode("utf-8"))
                continue
            with archive.open(info) as source, copy.open(_header_like(info, info.file_size), "w") as target:
                shutil.copyfileobj(source, target, AT_ONCE)


def _header_like(info: zipfile.ZipInfo, size: int = 0) -> zipfile.ZipInfo:
    """A header for the same archive member with contents of `size` bytes; zipfile needs the size to choose the length
    of the header."""
    like = zipfile.ZipInfo(info.filename, info.date_time)
    like.compress_type, like.comment = info.compress_type, info.comment
    like.external_attr, like.create_system = info.external_attr, info.create_system
    like.file_size = size
    return like


# --- HDF5 -----------------------------------------------------------------------------------------------------------
def _write_hdf5(saved: SavedFile, attributes: dict[str, Any], path: Path, drops_state: bool) -> None:
    import h5py

    assert saved.file is not None
    saved.file.seek(0)
    with path.open("xb") as copy:
        shutil.copyfileobj(saved.file, copy, AT_ONCE)
    try:
        with h5py.File(path, "r+") as opened, path.open("rb") as file:
            problem = next(problems_of_storage(opened, path.stat().st_size, file), None)
            for key, value in attributes.items():
                if problem is None and value is not None:
                    opened.attrs[key] = json.dumps(value).encode("utf-8")
            if problem is None and drops_state and STATE in opened:
                del opened[STATE]
    except (RuntimeError, ValueError, KeyError) as error:
        raise Unusable(f"{saved.name} is damaged: HDF5 says {str(error)!r}. {SAVE_AGAIN}") from None
    if problem is not None:
        raise Unusable(f"{saved.name} holds more than plain numbers: {problem}. {SAVE_AGAIN}")
