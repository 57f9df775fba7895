"""A saved model written anew: only its configuration is another one."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path

import pytest
from written_models import WEIGHTS, configuration_of, layer, model, write_archive

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.archives import saved_file_from_path
from mpdoctor.mending.saved import saved_copies
from mpdoctor.mending.saved.saved_copies import put_in_place, refuse_unreadable, write_copy

pytestmark = pytest.mark.fast
CONFIGURATION = model(layer("a", "mixed_float16"))


def members(path: Path) -> list[tuple[object, ...]]:
    with zipfile.ZipFile(path) as archive:
        return [
            (info.filename, info.compress_type, info.date_time, info.external_attr, archive.read(info))
            for info in archive.infolist()
        ]


def test_all_other_members_are_as_they_were(tmp_path: Path) -> None:
    before = write_archive(tmp_path / "a.keras", CONFIGURATION)
    write_copy(saved_file_from_path(str(before)), {"other": 1}, None, tmp_path / "b.keras")
    old, new = members(before), members(tmp_path / "b.keras")
    assert [member[:-1] for member in old] == [member[:-1] for member in new]
    assert [member for member in old if member[0] != "config.json"] == [
        member for member in new if member[0] != "config.json"
    ]
    assert configuration_of(tmp_path / "b.keras") == {"other": 1}
    assert zipfile.ZipFile(tmp_path / "b.keras").comment == b"by hand"


def test_an_old_archive_can_be_read_by_who_reads_it_now(tmp_path: Path) -> None:
    write_copy(
        saved_file_from_path(str(write_archive(tmp_path / "a.keras", CONFIGURATION))),
        CONFIGURATION,
        None,
        tmp_path / "b.keras",
    )
    assert saved_file_from_path(str(tmp_path / "b.keras")).configuration == CONFIGURATION


@pytest.mark.parametrize("name", ["../out.txt", "/etc/passwd", "a\\..\\b", "assets/../../x", "C:x"])
def test_paths_that_climb_out_are_refused(tmp_path: Path, name: str) -> None:
    path = write_archive(tmp_path / "a.keras", CONFIGURATION, **{name: b"x"})
    with pytest.raises(Unusable, match="leads out of the archive"):
        write_copy(saved_file_from_path(str(path)), CONFIGURATION, None, tmp_path / "b.keras")
    assert not (tmp_path / "b.keras").exists()


def test_links_are_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.keras", CONFIGURATION)
    link = zipfile.ZipInfo("assets/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(Unusable, match="a link and no file"):
        write_copy(saved_file_from_path(str(path)), CONFIGURATION, None, tmp_path / "b.keras")


def test_a_damaged_member_is_told(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.keras", CONFIGURATION)
    content = path.read_bytes()
    path.write_bytes(content.replace(WEIGHTS[:1000], bytes(1000), 1))
    with pytest.raises(Unusable, match="is damaged: Bad CRC"):
        write_copy(saved_file_from_path(str(path)), CONFIGURATION, None, tmp_path / "b.keras")


def test_a_second_configuration_is_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.keras", CONFIGURATION)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("config.json", json.dumps(CONFIGURATION))
    with pytest.raises(Unusable, match="twice"):
        saved_file_from_path(str(path))


def test_hdf5_needs_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_copies.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(Unusable, match=r"pip install 'mpdoctor\[h5\]'"):
        refuse_unreadable(tmp_path / "a.h5")
    refuse_unreadable(write_archive(tmp_path / "a.keras", CONFIGURATION))


@pytest.mark.parametrize("links", [True, False])
def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    if not links:
        monkeypatch.setattr(saved_copies.os, "link", _no_links)
    new, old = tmp_path / "new", tmp_path / "old"
    new.write_text("new")
    old.write_text("old")
    with pytest.raises(FileExistsError):
        put_in_place(new, old)
    assert old.read_text() == "old"
    put_in_place(new, tmp_path / "third")
    assert (tmp_path / "third").read_text() == "new"


def _no_links(*_: object) -> None:
    raise OSError(os.strerror(95))
