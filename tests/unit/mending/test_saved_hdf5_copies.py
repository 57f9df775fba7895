"""An HDF5 file written anew: only its configuration is another one. (Importing h5py starts a process.)"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from written_models import layer, model

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.archives import saved_file_from_path
from mpdoctor.mending.saved.saved_copies import write_copy

CONFIGURATION = model(layer("a", "mixed_float16"))


def test_hdf5_keeps_all_but_its_configuration(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(CONFIGURATION).encode()
        file.attrs["training_config"] = json.dumps({"loss": "mse"}).encode()
        file.attrs["keras_version"] = b"2.21.0"
        file.create_dataset("model_weights/a/kernel", data=[1.0, 2.0])
        file["model_weights"].attrs["layer_names"] = [b"a"]
    other = model(*(layer(f"a{number}", "float32") for number in range(900)))  # more than 64 KiB
    write_copy(saved_file_from_path(str(path)), other, {"loss": "mae"}, tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert json.loads(file.attrs["model_config"]) == other
        assert json.loads(file.attrs["training_config"]) == {"loss": "mae"}
        assert file.attrs["keras_version"] in ("2.21.0", b"2.21.0")
        assert list(file["model_weights/a/kernel"]) == [1.0, 2.0]
        assert list(file["model_weights"].attrs["layer_names"]) == ["a"]


def test_hdf5_with_numbers_elsewhere_is_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(CONFIGURATION).encode()
        file["model_weights"] = h5py.ExternalLink("/etc/passwd", "/")
    with pytest.raises(Unusable, match="more than plain numbers: 'model_weights', a link"):
        write_copy(saved_file_from_path(str(path)), CONFIGURATION, None, tmp_path / "b.h5")
