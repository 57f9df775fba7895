"""A .keras archive or an HDF5 file, read without running anything of it: which of the two it is, told from its content
and not from its name, and what it says of the model.

The file is opened once and stays open, or is read once into a copy that nobody else can write to, so that what is
judged here is what is loaded later (`judged_copies`). Raises Unusable, with what is wrong and what to do, for whatever
holds no model or two.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.configuration import policies_in
from mpdoctor.examiner.saved.hdf5_files import DAMAGE, SIGNATURE, attributes_of_model, signatures_of_hdf5
from mpdoctor.examiner.saved.hdf5_growth import MOST_ATTRIBUTES
from mpdoctor.examiner.saved.refused_contents import Contents, contents_from_configuration
from mpdoctor.facts.saved.file import SavedFileFacts

DAMAGED_LZMA: type[Exception] = zlib.error
try:
    from lzma import LZMAError
except ImportError:  # a Python without it reads no such archive
    pass
else:
    DAMAGED_LZMA = LZMAError

SAVE_AGAIN = "Save the model again with model.save()."
CONFIGURATION = "config.json"
METADATA = "metadata.json"
NAMES_OF_HDF5 = (".h5", ".hdf5")
LARGEST_CONFIGURATION = 32 * 2**20  # bytes of JSON; a thousand layers are two MiB, a million words of a vocabulary 15
LARGEST_METADATA = 2**20
MOST_PARTS = 500_000  # lists and dictionaries in a configuration; a thousand layers have 30,000
MOST_MEMBERS = 10_000  # of an archive: it holds the model, its weights, and a few files of each layer with a vocabulary
LARGEST_COPY = 256 * 2**20  # bytes; about as long as Keras takes to import
LARGEST_GROWTH = 200  # times its size that an archive may unpack to, where that is more than:
HARMLESS = 2**30  # bytes
# What zipfile lets through of a damaged archive.
LET_THROUGH = (EOFError, NotImplementedError, OSError, RuntimeError, zlib.error, DAMAGED_LZMA)


@dataclass(frozen=True)
class SavedFile:
    """A file of Keras', before loading.

    form
        "keras", "hdf5" or "saved-model".
    training
        How the model was compiled, where the file keeps that apart.
    file
        The open file; None for a SavedModel, which is a directory.
    """

    path: str
    form: str
    configuration: Any
    training: object = None
    keras_version: str = ""
    file: BinaryIO | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        return os.path.basename(os.path.normpath(self.path))

    @cached_property
    def contents(self) -> Contents:
        try:
            return contents_from_configuration([self.configuration, self.training])
        except ValueError as error:
            raise Unusable(f"{self.name} was not loaded: its configuration holds {error}. {SAVE_AGAIN}") from None

    def facts(self) -> SavedFileFacts:
        policies = policies_in([self.configuration, self.training])
        return SavedFileFacts(
            name=self.name,
            form=self.form,
            keras_version=self.keras_version,
            policy_classes=tuple(sorted({class_name for class_name, _ in policies if class_name})),
            policies=tuple(sorted({name for _, name in policies if name})),
            own_names=tuple(str(foreign) for foreign in self.contents.foreign),
        )


def saved_file_from_path(path: str, scratch: str | None = None) -> SavedFile:
    """A .keras archive or an HDF5 file. TensorFlow before 2.12 wrote HDF5 under the name of .keras, too.

    What is not too large is read from a copy without a name in the directory `scratch`: whoever can write to the file
    could change it between two looks."""
    name = os.path.basename(path)
    try:
        # a FIFO would wait for its writer
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        file: BinaryIO = os.fdopen(descriptor, "rb")
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if is_file and scratch is not None:
            file = _own_copy(file, scratch)
        head = file.read(1024) if is_file else b""
    except OSError as error:
        raise Unusable(f"{name} can't be read: {error.strerror}.") from None
    if not is_file:
        raise Unusable(f"{name} is no regular file, so it was not read. {SAVE_AGAIN}")
    if not head:
        raise Unusable(f"{name} is empty. {SAVE_AGAIN}")
    if head.startswith(b"version https://git-lfs"):
        raise Unusable(f"{name} is a pointer of Git LFS and not the file itself. Fetch it: git lfs pull")
    if head.startswith(SIGNATURE):
        return _from_hdf5(file, path, name)
    return _from_archive(file, path, name)


def _own_copy(file: BinaryIO, scratch: str) -> BinaryIO:
    """The open file, or a copy of it that has no name; `file` is closed then."""
    if os.fstat(file.fileno()).st_size > LARGEST_COPY:
        return file
    copy = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 - open as long as the model
    with file:
        left = LARGEST_COPY + 1  # of a file that grows meanwhile no more
        while left and (chunk := file.read(min(left, 2**20))):
            copy.write(chunk)
            left -= len(chunk)
    copy.seek(0)
    return copy


# --- .keras ---------------------------------------------------------------------------------------------------------
def _from_archive(file: BinaryIO, path: str, name: str) -> SavedFile:
    try:
        with zipfile.ZipFile(file) as archive:
            _refuse_bomb(archive, os.fstat(file.fileno()).st_size, name)
            _refuse_two_forms(archive, file, name)
            configuration = _configuration(archive.read(CONFIGURATION).decode("utf-8"), name)
            has_metadata = METADATA in archive.namelist()
            metadata = json.loads(archive.read(METADATA).decode("utf-8")) if has_metadata else {}
    except zipfile.BadZipFile as error:
        if "CRC" in str(error):
            raise Unusable(f"{name} is damaged: {error}. {SAVE_AGAIN}") from None
        if name.endswith(NAMES_OF_HDF5):
            raise Unusable(f"{name} is no HDF5 file: it does not begin like one. {SAVE_AGAIN}") from None
        raise Unusable(
            f"{name} is no .keras file, or only a part of one: it is not a whole zip archive. {SAVE_AGAIN}"
        ) from None
    except KeyError:
        raise Unusable(f"{name} is a zip archive without config.json, so it is no .keras file. {SAVE_AGAIN}") from None
    except (ValueError, RecursionError):
        raise Unusable(f"{name} holds a config.json that is no JSON. {SAVE_AGAIN}") from None
    except LET_THROUGH as error:
        raise Unusable(f"{name} is damaged: {error}. {SAVE_AGAIN}") from None
    if not isinstance(configuration, dict) or "class_name" not in configuration:
        raise Unusable(f"{name} holds a config.json that describes no model. {SAVE_AGAIN}")
    version = metadata.get("keras_version") if isinstance(metadata, dict) else None
    return SavedFile(path, "keras", configuration, keras_version=str(version or ""), file=file)


def _configuration(text: str, name: str) -> Any:
    refuse_many_parts([text], name)
    return json.loads(text)


def refuse_many_parts(texts: list[str], name: str) -> None:
    parts = sum(text.count("{") + text.count("[") for text in texts)
    if parts > MOST_PARTS:
        raise Unusable(
            f"{name} holds a configuration of {parts:,} parts, and mpdoctor reads at most {MOST_PARTS:,}: no model has "
            f"so many. {SAVE_AGAIN}"
        )


def _refuse_bomb(archive: zipfile.ZipFile, size: int, name: str) -> None:
    """Refuse an archive that declares too many members, or too much for its size: zipfile unpacks no more than is
    declared."""
    if len(archive.infolist()) > MOST_MEMBERS:
        raise Unusable(
            f"{name} holds {len(archive.infolist()):,} members, and mpdoctor reads at most {MOST_MEMBERS:,}: no model "
            f"has so many. {SAVE_AGAIN}"
        )
    packed, unpacked = packed_and_unpacked(archive, size)
    if unpacked > HARMLESS and unpacked > LARGEST_GROWTH * max(packed, 1):
        raise Unusable(
            f"{name} unpacks from {size_text(packed)} to {size_text(unpacked)}: no model does, so it was not opened. "
            f"{SAVE_AGAIN}"
        )
    for entry, largest in ((CONFIGURATION, LARGEST_CONFIGURATION), (METADATA, LARGEST_METADATA)):
        for info in archive.infolist():
            if info.filename == entry and info.file_size > largest:
                told = size_text(info.file_size)
                raise Unusable(f"{name} holds a {entry} of {told}: it was not opened. {SAVE_AGAIN}")


def packed_and_unpacked(archive: zipfile.ZipFile, size: int) -> tuple[int, int]:
    """Bytes of all members. Members may share what is packed, so that this is no more than the archive's own size."""
    entries = archive.infolist()
    return min(size, sum(entry.compress_size for entry in entries)), sum(entry.file_size for entry in entries)


def _refuse_two_forms(archive: zipfile.ZipFile, file: BinaryIO, name: str) -> None:
    """Which of two models is loaded would depend on the file's name and on who reads it."""
    twice = sorted(member for member, times in Counter(archive.namelist()).items() if times > 1)
    if twice:
        raise Unusable(f"{name} holds {twice[0]} twice, so it was not opened. {SAVE_AGAIN}")
    first = min((info.header_offset for info in archive.infolist()), default=0)
    # weights are HDF5 themselves, and may happen to begin where a reader of HDF5 looks
    weights = {start_of_member(file, info) for info in archive.infolist() if info.filename.endswith(".h5")}
    outside = set(signatures_of_hdf5(file)) - weights
    if first > 0 or outside:
        raise Unusable(
            f"{name} is a zip archive with something else {'before' if first > 0 else 'between'} its members, so that "
            f"it can be read as two different models, and was not opened. {SAVE_AGAIN}"
        )


def start_of_member(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """The offset of a member's content: behind its own header, whose name and extra field have lengths of their own."""
    file.seek(info.header_offset + 26)
    lengths = file.read(4)
    return info.header_offset + 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")


def size_text(size: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


# --- HDF5 -----------------------------------------------------------------------------------------------------------
def _from_hdf5(file: BinaryIO, path: str, name: str) -> SavedFile:
    try:
        import h5py
    except ImportError:
        raise Unusable(f"{name} is an HDF5 file, and h5py is missing here. Install it: pip install h5py") from None
    try:
        with h5py.File(file, "r") as opened:
            if len(opened.attrs) > MOST_ATTRIBUTES:
                raise Unusable(
                    f"{name} holds {len(opened.attrs):,} attributes, and mpdoctor reads at most {MOST_ATTRIBUTES:,}: "
                    f"no model has so many. {SAVE_AGAIN}"
                )
            attributes, held = attributes_of_model(opened, LARGEST_CONFIGURATION), sorted(opened)
    except DAMAGE as error:
        reason = str(error).split("(")[-1].rstrip(")")
        raise Unusable(f"{name} is damaged: HDF5 says {reason!r}. {SAVE_AGAIN}") from None
    if _is_archive(file):
        raise Unusable(
            f"{name} is an HDF5 file with a zip archive behind it, so that it can be read as two different models, "
            f"and was not opened. {SAVE_AGAIN}"
        )
    if "model_config" not in attributes:
        raise Unusable(_without_model(name, attributes, held))
    try:
        configuration = _configuration(attributes["model_config"], name)
        training = _configuration(attributes["training_config"], name) if "training_config" in attributes else None
    except (ValueError, RecursionError):
        raise Unusable(f"{name} holds a model_config that is no JSON. {SAVE_AGAIN}") from None
    if not isinstance(configuration, dict):
        raise Unusable(f"{name} holds a model_config that describes no model. {SAVE_AGAIN}")
    return SavedFile(path, "hdf5", configuration, training, attributes.get("keras_version", ""), file)


def _is_archive(file: BinaryIO) -> bool:
    """Whether zipfile finds members in it. (A few bytes of weights alone may look like the end of an archive.)"""
    try:
        with zipfile.ZipFile(file) as archive:
            return bool(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


SHOWN = 4


def _without_model(name: str, attributes: dict[str, str], held: list[str]) -> str:
    if "layer_names" in attributes or {"layers", "_layer_checkpoint_dependencies"} & set(held):
        return (
            f"{name} holds weights only, and no model. Point at the function that builds the model and loads them "
            "(model.py:build_model), or save the whole model with model.save()."
        )
    inside = ", ".join(held[:SHOWN]) + (" …" if len(held) > SHOWN else "") if held else "nothing"
    return f"{name} is an HDF5 file, but no model of Keras': it holds {inside}. {SAVE_AGAIN}"
