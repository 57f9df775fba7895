"""HDF5 of more parts than any model has: counted, and not searched."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved import hdf5_files, hdf5_growth
from mpdoctor.examiner.saved.archives import saved_file_from_path
from mpdoctor.examiner.saved.hdf5_files import problems_of_storage

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it comes with TensorFlow")


def nested(file: Any) -> None:
    group = file
    for _ in range(150):
        group = group.create_group("a")


def many_groups(file: Any) -> None:
    for number in range(60):
        file.create_group(f"g{number}")


def many_attributes(file: Any) -> None:
    for number in range(60):
        file["model_weights"].attrs[f"a{number}"] = 1


def many_names(file: Any) -> None:
    file["model_weights"].attrs["weight_names"] = [b"kernel"] * 30
    file["model_weights"].attrs["layer_names"] = [b"kernel"] * 30


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        (nested, "groups in groups of more than 100 levels"),
        (many_groups, "more than 50 groups and datasets"),
        (many_attributes, "more than 50 attributes"),
        (many_names, "more than 50 names in its weight_names and layer_names"),
    ],
)
def test_more_than_any_model_has_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: Any, words: str
) -> None:
    monkeypatch.setattr(hdf5_files, "MOST_MEMBERS", 50 if fill is many_groups else 500)
    monkeypatch.setattr(hdf5_growth, "MOST_ATTRIBUTES", 50)
    monkeypatch.setattr(hdf5_growth, "MOST_NAMES", 50)
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.create_group("model_weights").create_dataset("kernel", data=[1.0, 2.0])
        assert not list(problems_of_storage(file, 10_000, io.BytesIO()))
        fill(file)
        (problem,) = problems_of_storage(file, 10_000, io.BytesIO())
    assert problem == f"{words}, which is as {'deep' if fill is nested else 'many'} as mpdoctor reads"


def test_a_file_of_more_attributes_than_any_model_is_not_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "m.h5", "w", libver="latest") as file:
        for number in range(50_001):
            file.attrs[f"a{number}"] = 1
    with pytest.raises(Unusable, match=r"^m.h5 holds 50,001 attributes, and mpdoctor reads at most 50,000: no model"):
        saved_file_from_path(str(tmp_path / "m.h5"))


# As Keras 3 names the weights of a model that is a layer of another: in one attribute, as texts of variable length.
NAMES = [f"block{number}/depthwise_kernel" for number in range(1000)]


@pytest.mark.parametrize(("name", "is_read"), [("", True), ("x" * 2**20, False)])
def test_the_names_of_a_large_model_are_read_and_one_long_text_a_thousand_times_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_read: bool
) -> None:
    """Each of the names might be as long as the file, 4 MiB, and 1000 of these are more than is read."""
    monkeypatch.setattr(hdf5_growth, "HARMLESS", 2**28)
    monkeypatch.setattr(hdf5_growth, "LARGEST_GROWTH", 1)
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("kernel", data=[1.0] * 2**19)
        file.attrs["model_config"] = "{" + " " * 10**5 + "}"
        file.create_group("model_weights").attrs["weight_names"] = NAMES
        file["model_weights"].attrs["other"] = name
    with h5py.File(path) as file, path.open("rb") as opened:
        problems = list(problems_of_storage(file, path.stat().st_size, opened))
    assert [problem.startswith("the attribute 'weight_names', whose texts may have") for problem in problems] == (
        [] if is_read else [True]
    )


@pytest.mark.parametrize("before", [0, 1, 2**24 - 1, 2**24 + 7, 2**24 + 17])
def test_a_collection_is_found_wherever_it_begins(before: int) -> None:
    content = bytes(before) + hdf5_growth.COLLECTION + (40).to_bytes(8, "little") + bytes(24)
    assert hdf5_growth.longest_text(io.BytesIO(content)) == 40
