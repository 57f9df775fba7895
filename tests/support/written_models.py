"""Saved models written by hand, without a Keras: configurations as the Kerases write them, and archives around them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

WEIGHTS = bytes(range(256)) * 40


def dtype(name: str, keras: str) -> Any:
    """What Keras 3, tf_keras, and the HDF5 files of Keras 2 write for a policy."""
    if keras == "3":
        return {"module": "keras", "class_name": "DTypePolicy", "config": {"name": name}, "registered_name": None}
    if not name.startswith("mixed"):
        return name
    policy = {"class_name": "Policy", "config": {"name": name}}
    return {"module": "keras.mixed_precision", **policy, "registered_name": None} if keras == "tf_keras" else policy


def layer(name: str, policy: Any, keras: str = "3", class_name: str = "Dense", **config: Any) -> dict[str, Any]:
    held = dtype(policy, keras) if isinstance(policy, str) else policy
    return {"class_name": class_name, "config": {"name": name, "trainable": True, "dtype": held, **config}}


def model(*layers: Any, name: str = "model", **config: Any) -> dict[str, Any]:
    inputs = {"class_name": "InputLayer", "config": {"batch_shape": [None, 4], "dtype": "float32", "name": "in"}}
    held = {"name": name, "trainable": True, "layers": [inputs, *layers], **config}
    return {"class_name": "Functional", "config": held}


def write_archive(path: Path, configuration: Any, keras_version: str = "3.15.1", **members: bytes) -> Path:
    """With members of both compressions, an asset and a folder, in an order that is no sorted one."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"by hand"
        archive.writestr("metadata.json", json.dumps({"keras_version": keras_version}))
        archive.writestr(zipfile.ZipInfo("model.weights.h5", (2020, 2, 2, 2, 2, 2)), WEIGHTS)
        archive.writestr("config.json", json.dumps(configuration))
        archive.writestr("assets/", b"")
        archive.writestr("assets/words.txt", b"word\n" * 1000, zipfile.ZIP_DEFLATED)
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def configuration_of(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("config.json"))
