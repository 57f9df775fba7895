"""The batch that LossScaleMonitor keeps is read as what it is, and nothing else is read at all."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mpdoctor.examiner.recorded.kept_arrays import NotKeptArrays, arrays_from_file

HEAD = b"\x93NUMPY\x01\x00"


def member(held: object) -> bytes:
    """As numpy.save writes it."""
    import io

    file = io.BytesIO()
    np.save(file, held, allow_pickle=True)  # type: ignore[arg-type]
    return file.getvalue()


def header(text: str, content: bytes = b"") -> bytes:
    told = text.encode()
    return HEAD + len(told).to_bytes(2, "little") + told + content


def npz(path: Path, members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> str:
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return str(path)


ONES = member(np.ones([3, 2], "float32"))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32", "complex64", ">f4"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 2), (0, 4), (1, 2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_numpy_writes_comes_back(tmp_path: Path, dtype: str, shape: tuple[int, ...], order: str) -> None:
    told = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype), order=order)  # type: ignore[call-overload]
    np.savez(tmp_path / "run.batch.npz", batch_0=told, weight_0_12=np.ones(3, "float32"))
    found = arrays_from_file(str(tmp_path / "run.batch.npz"))
    assert list(found) == ["batch_0", "weight_0_12"]
    assert found["batch_0"].dtype == told.dtype and found["batch_0"].shape == shape
    assert np.array_equal(found["batch_0"], told)


@pytest.mark.parametrize("name", ["code.py", "../batch_0.npy", "/batch_0.npy", "weight_0.npy", "batch_0.npy\n"])
def test_a_member_of_another_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotKeptArrays):
        arrays_from_file(npz(tmp_path / "b.npz", {name: ONES}))


@pytest.mark.parametrize(
    "content",
    [
        member(np.array([{}])),
        member(np.array(["text"])),
        member(np.zeros(2, [("a", "f4")])),
        member(np.zeros(2, "datetime64[s]")),
        ONES.replace(b"(3, 2)", b"(9, 9)"),
        ONES.replace(b"(3, 2)", b"(3,2,)"),
        ONES.replace(b"<f4", b"<f3"),
        ONES[:-1],
        ONES + b"\0",
        ONES[:40],
        b"import os",
        b"",
        HEAD.replace(b"\x01", b"\x02") + ONES[8:],
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999, 999999999999, 999999999999), }\n"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 999999999999, 999999999999), }\n"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1), }\n", b"\0" * 4),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1, " * 70 + "1), }\n", b"\0" * 4),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': " + "(" * 900 + ")" * 900 + ", }\n"),
        header("{'descr': '<f4', 'fortran_order': __import__('os').abort(), 'shape': (1,), }\n", b"\0" * 4),
    ],
)
def test_an_array_that_is_none_of_numbers_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(NotKeptArrays):
        arrays_from_file(npz(tmp_path / "b.npz", {"batch_0.npy": content}))


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = member(np.zeros([1 << 22], "float32"))
    for kind in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        with pytest.raises(NotKeptArrays):
            arrays_from_file(npz(tmp_path / f"{kind}.npz", {"batch_0.npy": bomb}, kind))


def test_members_that_lie_over_each_other_are_refused(tmp_path: Path) -> None:
    content = Path(npz(tmp_path / "b.npz", {"batch_0.npy": ONES})).read_bytes()
    start, stop = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    entry, end = content[start:stop], bytearray(content[stop:])
    entries = b"".join(entry.replace(b"batch_0", b"batch_%d" % number) for number in range(5))
    end[8:12], end[12:16] = (5).to_bytes(2, "little") * 2, len(entries).to_bytes(4, "little")
    (tmp_path / "b.npz").write_bytes(content[:start] + entries + bytes(end))
    assert len(zipfile.ZipFile(tmp_path / "b.npz").infolist()) == 5
    with pytest.raises(NotKeptArrays):
        arrays_from_file(str(tmp_path / "b.npz"))


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("batch_0.npy", ONES)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("batch_0.npy", ONES)
    with pytest.raises(NotKeptArrays):
        arrays_from_file(str(tmp_path / "b.npz"))


def test_a_damaged_archive_is_refused_or_read(tmp_path: Path) -> None:
    whole = Path(npz(tmp_path / "whole.npz", {"batch_0.npy": ONES, "weight_0_0.npy": ONES})).read_bytes()
    for at in range(len(whole)):
        for value in (0, 0xFF, whole[at] ^ 1):
            (tmp_path / "b.npz").write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            try:
                found = arrays_from_file(str(tmp_path / "b.npz"))
            except NotKeptArrays:
                continue
            assert all(array.dtype.kind in "biufc" for array in found.values())
        (tmp_path / "b.npz").write_bytes(whole[:at])
        with pytest.raises(NotKeptArrays):
            arrays_from_file(str(tmp_path / "b.npz"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("kind", ["pipe", "device", "directory", "sparse"])
def test_only_a_regular_file_is_opened(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "b.npz"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "directory":
        place.mkdir()
    else:
        place.touch()
        os.truncate(place, 1 << 40)
    with pytest.raises(NotKeptArrays):
        arrays_from_file(str(place))


def test_a_link_in_a_circle_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "b.npz").symlink_to("b.npz")
    with pytest.raises(OSError, match="symbolic link"):
        arrays_from_file(str(tmp_path / "b.npz"))


def test_it_needs_no_tensorflow() -> None:
    program = "import sys, mpdoctor.examiner.recorded.kept_arrays; print('tensorflow' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
