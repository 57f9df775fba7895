"""What Keras is given to load holds what was judged and nothing else; files that can be read as two models are refused,
and so are weights that lie in other files."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved import archives, hdf5_files, hdf5_growth, judged_copies
from mpdoctor.examiner.saved.archives import saved_file_from_path
from mpdoctor.examiner.saved.judged_copies import path_to_load

np = pytest.importorskip("numpy", reason="NumPy is not installed: it comes with TensorFlow")
h5py = pytest.importorskip("h5py", reason="h5py is not installed: it comes with TensorFlow")
MODEL = {"class_name": "Sequential", "config": {"name": "innocent", "layers": []}}
OTHER = {"class_name": "Sequential", "config": {"name": "other", "layers": []}}


def hdf5(model: Any = MODEL, user_block: int = 0, fill: Any = lambda file: None) -> bytes:
    stored = io.BytesIO()
    with h5py.File(stored, "w", **({"userblock_size": user_block} if user_block else {})) as file:
        file.create_group("model_weights").create_dataset("kernel", data=[1.0, 2.0])
        if model is not None:
            file.attrs["model_config"] = json.dumps(model).encode()
        file.attrs["keras_version"] = b"2.15.0"
        fill(file)
    return stored.getvalue()


def archive(model: Any = MODEL, **members: bytes) -> bytes:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as file:
        file.writestr("metadata.json", '{"keras_version": "3.15.1"}')
        file.writestr("config.json", json.dumps(model))
        for name, content in {"model.weights.h5": hdf5(None), **members}.items():
            file.writestr(name.replace("__", "/"), content)
    return stored.getvalue()


def loaded(directory: Path, content: bytes, name: str = "m.keras") -> Path:
    """What Keras would be given for a file of this content."""
    (directory / name).write_bytes(content)
    (directory / "scratch").mkdir(exist_ok=True)
    return Path(path_to_load(saved_file_from_path(str(directory / name)), str(directory / "scratch")))


def refused(directory: Path, content: bytes, name: str = "m.keras") -> str:
    with pytest.raises(Unusable) as told:
        loaded(directory, content, name)
    assert name in str(told.value) and "\n" not in str(told.value)
    return str(told.value)


# --- copies ---------------------------------------------------------------------------------------------------------
def test_an_archive_is_copied_without_what_keras_does_not_read(tmp_path: Path) -> None:
    extra = {"assets__words.txt": b"a", "README.md": b"x", "other.h5": b"y", "assets__..__up": b"z"}
    copy = loaded(tmp_path, archive(**extra))
    with zipfile.ZipFile(copy) as file:
        assert file.namelist() == ["model.weights.h5", "assets/words.txt", "metadata.json", "config.json"]
        assert json.loads(file.read("config.json")) == MODEL
        assert file.read("model.weights.h5") == hdf5(None)
    with copy.open("rb") as opened:
        assert not hdf5_files.signatures_of_hdf5(opened)


def test_an_hdf5_file_is_copied_without_what_keras_does_not_read(tmp_path: Path) -> None:
    import h5py

    copy = loaded(tmp_path, hdf5(fill=lambda file: file.create_group("hidden")), "m.h5")
    with h5py.File(copy) as file:
        assert sorted(file) == ["model_weights"] and sorted(file.attrs) == ["keras_version", "model_config"]
        assert list(file["model_weights/kernel"]) == [1.0, 2.0]
        assert json.loads(file.attrs["model_config"]) == MODEL


@pytest.mark.parametrize(("content", "name"), [(archive(), "m.keras"), (hdf5(), "m.h5"), (hdf5(), "m.keras")])
def test_a_large_file_of_one_form_is_linked_and_stays_the_one_that_was_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, name: str
) -> None:
    monkeypatch.setattr(archives, "LARGEST_COPY", 10)
    monkeypatch.setattr(judged_copies, "LARGEST_COPY", 10)
    (tmp_path / name).write_bytes(content)
    (tmp_path / "scratch").mkdir()
    saved = saved_file_from_path(str(tmp_path / name))
    link = Path(path_to_load(saved, str(tmp_path / "scratch")))
    if not Path("/proc/self/fd").exists():
        pytest.skip("no procfs: large files are copied, too")
    assert link.is_symlink() and link.read_bytes() == content
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(b"another")
    assert link.read_bytes() == content


@pytest.mark.parametrize("name", ["m.keras", "m.h5"])
def test_what_is_written_to_a_file_while_it_is_judged_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its weights were found to be plain numbers, and then copied from the file: another look at it."""
    canary = tmp_path / "canary"
    canary.write_bytes(b"read" * 2)

    def lead_out(file: Any) -> None:
        group = file.require_group("model_weights")
        del group["kernel"]
        group.create_dataset("kernel", (2,), "f4", external=[(str(canary), 0, 8)])

    innocent, other = (hdf5(), hdf5(fill=lead_out)) if name == "m.h5" else archives_of_one_crc(lead_out)
    path = tmp_path / name
    path.write_bytes(innocent)
    judged = judged_copies.problems_of_storage

    def judge_and_be_fooled(*given: Any) -> Any:
        yield from judged(*given)
        path.write_bytes(other)

    monkeypatch.setattr(judged_copies, "problems_of_storage", judge_and_be_fooled)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    saved = saved_file_from_path(str(path), str(scratch))
    copy = Path(path_to_load(saved, str(scratch)))
    assert path.read_bytes() == other and b"readread" not in copy.read_bytes()
    weights = copy.read_bytes()
    if name == "m.keras":
        with zipfile.ZipFile(copy) as file:
            weights = file.read("model.weights.h5")
    with h5py.File(io.BytesIO(weights)) as file:
        assert not file["model_weights/kernel"].external and list(file["model_weights/kernel"]) == [1.0, 2.0]
    assert [entry.name for entry in scratch.iterdir()] == [name]


def archives_of_one_crc(fill: Any) -> tuple[bytes, bytes]:
    """Two archives that differ in their weights and not in the sum that zipfile compares: four bytes behind HDF5's own
    end make up for the difference."""
    first, second = (hdf5(None) + b"\0" * 4, hdf5(None, fill=fill))
    first = first.ljust(max(len(first), len(second) + 4), b"\0")
    second = with_sum(second.ljust(len(first) - 4, b"\0"), zlib.crc32(first))
    return tuple(archive(**{"model.weights.h5": weights}) for weights in (first, second))


def with_sum(content: bytes, wanted: int) -> bytes:
    """The content with four bytes behind it, so that its CRC-32 is the wanted one."""
    table = list(range(256))
    for _ in range(8):
        table = [number >> 1 ^ (0xEDB88320 if number & 1 else 0) for number in table]
    register = wanted ^ 0xFFFFFFFF
    for _ in range(4):
        number = next(number for number in range(256) if table[number] >> 24 == register >> 24)
        register = (register ^ table[number]) << 8 & 0xFFFFFFFF | number
    return content + (register ^ zlib.crc32(content) ^ 0xFFFFFFFF).to_bytes(4, "little")


# --- two models in one file -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["m.keras", "m.h5", "m"])
@pytest.mark.parametrize("user_block", [0, 512, 2048])
def test_hdf5_in_front_of_an_archive(tmp_path: Path, name: str, user_block: int) -> None:
    front = hdf5(user_block=user_block)
    if user_block:
        front = hdf5_files.SIGNATURE + front[8:]  # so that it begins like one
    words = refused(tmp_path, front + archive(OTHER), name)
    assert "two different models" in words or "damaged" in words


@pytest.mark.parametrize("name", ["m.keras", "m.h5", "m"])
@pytest.mark.parametrize("offset", [512, 1024, 16384])
def test_an_archive_with_hdf5_where_a_reader_looks_for_it(tmp_path: Path, name: str, offset: int) -> None:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as file:
        file.writestr("config.json", json.dumps(MODEL))
        file.writestr("model.weights.h5", hdf5(None) if offset > 4096 else b"")
        start = file.fp.tell() + 30 + len("x.bin")
        file.writestr("x.bin", b"\0" * (offset - start) + hdf5(OTHER, user_block=offset)[offset:])
    assert stored.getvalue()[offset : offset + 4] == b"\x89HDF"
    assert "two different models" in refused(tmp_path, stored.getvalue(), name)


def test_an_archive_behind_something_else(tmp_path: Path) -> None:
    assert "two different models" in refused(tmp_path, b"#!/bin/sh\n" + archive())


def test_a_member_that_is_there_twice(tmp_path: Path) -> None:
    stored = io.BytesIO(archive())
    with zipfile.ZipFile(stored, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("config.json", json.dumps(OTHER))
    assert "config.json twice" in refused(tmp_path, stored.getvalue())


def test_weights_that_happen_to_begin_where_a_reader_of_hdf5_looks(tmp_path: Path) -> None:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as file:
        file.writestr("metadata.json", "{}")
        text = json.dumps(MODEL)
        taken = file.fp.tell() + 30 + len("config.json") + 30 + len("model.weights.h5")
        file.writestr("config.json", text + " " * (1024 - taken - len(text)))
        file.writestr("model.weights.h5", hdf5(None))
    assert stored.getvalue()[1024:1028] == b"\x89HDF"
    with loaded(tmp_path, stored.getvalue()).open("rb") as copy:
        assert not hdf5_files.signatures_of_hdf5(copy)


# --- weights that are no plain data of the file ---------------------------------------------------------------------
def external_storage(file: Any) -> None:
    file.create_dataset("outside", (4,), "u1", external=[("/etc/passwd", 0, 4)])


def external_link(file: Any) -> None:
    import h5py

    file["outside"] = h5py.ExternalLink("/etc/passwd", "/")


def soft_link(file: Any) -> None:
    import h5py

    file["outside"] = h5py.SoftLink("/outside")


def virtual_dataset(file: Any) -> None:
    import h5py

    layout = h5py.VirtualLayout((4,), "u1")
    layout[:] = h5py.VirtualSource("other.h5", "kernel", (4,))
    file.create_virtual_dataset("outside", layout)


def reference(file: Any) -> None:
    import h5py

    file.create_dataset("outside", (1,), h5py.ref_dtype)


def bomb(file: Any) -> None:
    file.create_dataset("outside", (2**40,), "f4", chunks=(1024,))


def many_that_declare(file: Any) -> None:
    for number in range(5):
        file.create_dataset(f"big{number}", (225 * 2**20,), "f4", chunks=(1024,))


def one_that_is_named_often(file: Any) -> None:
    file.create_dataset("named/big", (225 * 2**20,), "f4", chunks=(1024,))
    file["named"].attrs["weight_names1"] = [b"big", b"./big", b"/named/big"]


def texts(file: Any) -> None:
    file.create_dataset("model_weights/texts", (3, 2), h5py.string_dtype())[:] = "a" * 1000


def texts_of_an_attribute(file: Any) -> None:
    file.attrs.create("weight_names", ["a"] * 300, dtype=h5py.string_dtype())


def more_texts_than_words(file: Any) -> None:
    file.create_dataset("texts", (10**7,), h5py.string_dtype(), chunks=(1024,))


def hard_link_loop(file: Any) -> None:
    file["model_weights/again"] = file["model_weights"]


def compressed(file: Any) -> None:
    file.create_dataset("small", (1000,), "f4", compression="gzip", shuffle=True)
    file.create_dataset("words", data=[b"a", b"b"])


OUTSIDE = [
    *(external_storage, external_link, soft_link, virtual_dataset, reference, bomb),
    *(many_that_declare, one_that_is_named_often, more_texts_than_words),
]


@pytest.mark.parametrize("put", OUTSIDE)
def test_weights_that_lie_elsewhere_are_refused(tmp_path: Path, put: Any) -> None:
    words = "its weights are not plain numbers in the file itself"
    assert words in refused(tmp_path, hdf5(fill=put), "m.h5")
    assert words in refused(tmp_path, archive(**{"model.weights.h5": hdf5(None, fill=put)}))


@pytest.mark.parametrize("put", [texts, texts_of_an_attribute])
def test_texts_may_be_one_text_a_thousand_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Any) -> None:
    monkeypatch.setattr(hdf5_growth, "HARMLESS", 4000)
    monkeypatch.setattr(hdf5_growth, "LARGEST_GROWTH", 0)
    assert "text" in refused(tmp_path, hdf5(fill=put), "m.h5")


@pytest.mark.parametrize("member", ["model.weights.h5", "model.weights.npz"])
def test_a_compressed_member_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, member: str) -> None:
    """Each step back in one unpacks it again from its start: 3000 small weights took a minute."""
    arrays = io.BytesIO()
    np.savez(arrays, one=np.zeros(9), other=np.zeros(9))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("config.json", json.dumps(MODEL))
        file.writestr(member, hdf5(None) if member.endswith("h5") else arrays.getvalue())
    monkeypatch.delattr(zipfile.ZipExtFile, "seek")
    assert loaded(tmp_path, packed.getvalue()).exists()


@pytest.mark.parametrize("put", [hard_link_loop, compressed, texts, texts_of_an_attribute])
def test_weights_of_other_shapes_are_plain_data(tmp_path: Path, put: Any) -> None:
    assert loaded(tmp_path, hdf5(fill=put), "m.h5").exists()
    assert loaded(tmp_path, archive(**{"model.weights.h5": hdf5(None, fill=put)})).exists()


def test_arrays_that_unpack_to_more_than_any_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_copies, "HARMLESS", 2**20)
    arrays = io.BytesIO()
    with zipfile.ZipFile(arrays, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.npy", b"\0" * 4 * 2**20)
    assert "weights that unpack" in refused(tmp_path, archive(**{"model.weights.npz": arrays.getvalue()}))


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.keras")
    with pytest.raises(Unusable, match="no regular file"):
        saved_file_from_path(str(tmp_path / "m.keras"))
