"""What lies in a saved file, told from its content and not from its name, and read without running anything of it.

Raises Unusable, with what is wrong and what to do, for whatever holds no model.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

from mpdoctor.examiner.saved_configuration import own_names_in, policies_in
from mpdoctor.examiner.session import Unusable
from mpdoctor.facts.saved_file import SavedFileFacts

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
SAVE_AGAIN = "Save the model again with model.save()."
LARGEST_CONFIGURATION = 256 * 2**20  # bytes of JSON
LARGEST_GROWTH = 200  # times its size that an archive may unpack to, where that is more than:
HARMLESS = 2**30  # bytes
SHOWN = 4


@dataclass(frozen=True)
class SavedFile:
    """A file of Keras', before loading. `training` is how the model was compiled, where the file keeps that apart."""

    path: str
    form: str
    configuration: Any
    training: Any = None
    keras_version: str = ""

    @property
    def name(self) -> str:
        return os.path.basename(os.path.normpath(self.path))

    def facts(self) -> SavedFileFacts:
        whole = [self.configuration, self.training]
        policies = policies_in(whole)
        return SavedFileFacts(
            name=self.name,
            form=self.form,
            keras_version=self.keras_version,
            policy_classes=tuple(sorted({class_name for class_name, _ in policies if class_name})),
            policies=tuple(sorted({name for _, name in policies if name})),
            own_names=tuple(str(one) for one in own_names_in(whole)),
        )


def saved_file_from_path(path: str) -> SavedFile:
    """A .keras archive or an HDF5 file. TensorFlow before 2.12 wrote HDF5 under the name of .keras, too."""
    name = os.path.basename(path)
    try:
        with open(path, "rb") as file:
            head = file.read(1024)
    except OSError as error:
        raise Unusable(f"{name} can't be read: {error.strerror}.") from None
    if not head:
        raise Unusable(f"{name} is empty. {SAVE_AGAIN}")
    if head.startswith(b"version https://git-lfs"):
        raise Unusable(f"{name} is a pointer of Git LFS and not the file itself. Fetch it: git lfs pull")
    if head.startswith(HDF5_MAGIC):
        return _from_hdf5(path, name)
    return _from_archive(path, name)


# --- .keras ---------------------------------------------------------------------------------------------------------
def _from_archive(path: str, name: str) -> SavedFile:
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_bomb(archive, name)
            broken = archive.testzip()
            if broken:
                raise Unusable(f"{name} is damaged: {broken} inside it does not match its checksum. {SAVE_AGAIN}")
            configuration = json.loads(archive.read("config.json").decode("utf-8"))
            has_metadata = "metadata.json" in archive.namelist()
            metadata = json.loads(archive.read("metadata.json").decode("utf-8")) if has_metadata else {}
    except zipfile.BadZipFile:
        raise Unusable(
            f"{name} is no .keras file, or only a part of one: it is not a whole zip archive. {SAVE_AGAIN}"
        ) from None
    except KeyError:
        raise Unusable(f"{name} is a zip archive without config.json, so it is no .keras file. {SAVE_AGAIN}") from None
    except (ValueError, RecursionError):
        raise Unusable(f"{name} holds a config.json that is no JSON. {SAVE_AGAIN}") from None
    except (EOFError, NotImplementedError, OSError, RuntimeError, zlib.error) as error:  # what zipfile lets through
        raise Unusable(f"{name} is damaged: {error}. {SAVE_AGAIN}") from None
    if not isinstance(configuration, dict) or "class_name" not in configuration:
        raise Unusable(f"{name} holds a config.json that describes no model. {SAVE_AGAIN}")
    version = metadata.get("keras_version") if isinstance(metadata, dict) else None
    return SavedFile(path, "keras", configuration, keras_version=str(version or ""))


def _refuse_bomb(archive: zipfile.ZipFile, name: str) -> None:
    """zipfile unpacks no more than what an archive declares, so that what it declares can be judged."""
    packed = sum(one.compress_size for one in archive.infolist())
    unpacked = sum(one.file_size for one in archive.infolist())
    if unpacked > HARMLESS and unpacked > LARGEST_GROWTH * max(packed, 1):
        raise Unusable(
            f"{name} unpacks from {_size_text(packed)} to {_size_text(unpacked)}: no model does, so it was not opened. "
            f"{SAVE_AGAIN}"
        )
    size = archive.getinfo("config.json").file_size
    if size > LARGEST_CONFIGURATION:
        raise Unusable(f"{name} holds a config.json of {_size_text(size)}: it was not opened. {SAVE_AGAIN}")


def _size_text(size: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


# --- HDF5 -----------------------------------------------------------------------------------------------------------
def _from_hdf5(path: str, name: str) -> SavedFile:
    try:
        import h5py
    except ImportError:
        raise Unusable(f"{name} is an HDF5 file, and h5py is missing here. Install it: pip install h5py") from None
    try:
        with h5py.File(path, "r") as file:
            attributes = {key: _text(file.attrs[key]) for key in file.attrs}
            held = sorted(file)
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).split("(")[-1].rstrip(")")
        raise Unusable(f"{name} is damaged: HDF5 says {reason!r}. {SAVE_AGAIN}") from None
    if "model_config" not in attributes:
        raise Unusable(_without_model(name, attributes, held))
    try:
        configuration = json.loads(attributes["model_config"])
        training = json.loads(attributes["training_config"]) if "training_config" in attributes else None
    except (ValueError, RecursionError):
        raise Unusable(f"{name} holds a model_config that is no JSON. {SAVE_AGAIN}") from None
    if not isinstance(configuration, dict):
        raise Unusable(f"{name} holds a model_config that describes no model. {SAVE_AGAIN}")
    return SavedFile(path, "hdf5", configuration, training, attributes.get("keras_version", ""))


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _without_model(name: str, attributes: dict[str, str], held: list[str]) -> str:
    if "layer_names" in attributes or {"layers", "_layer_checkpoint_dependencies"} & set(held):
        return (
            f"{name} holds weights only, and no model. Point at the function that builds the model and loads them "
            "(model.py:build_model), or save the whole model with model.save()."
        )
    inside = ", ".join(held[:SHOWN]) + (" …" if len(held) > SHOWN else "") if held else "nothing"
    return f"{name} is an HDF5 file, but no model of Keras': it holds {inside}. {SAVE_AGAIN}"
