"""The private directory of a run: readable by its user alone, removed afterwards, or by the next run where it was
killed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpdoctor.examination import private_directory as module
from mpdoctor.examination.private_directory import private_directory

pytestmark = pytest.mark.skipif(os.name == "nt", reason="this system has no flock")
HOLD = """\
import sys, time
from mpdoctor.examination.private_directory import private_directory
with private_directory() as folder:
    (folder / "request.json").write_text("--password=x")
    print(folder, flush=True)
    sys.stdin.read()
"""
HURRY = """\
from mpdoctor.examination.private_directory import private_directory
for _ in range(200):
    with private_directory() as folder:
        (folder / "request.json").touch()
        assert (folder / "request.json").exists()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("PYTHONPATH", str(Path(module.__file__).parents[1]))
    return tmp_path / "temporary"


def holder() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def stale(temporary: Path) -> Path:
    process, folder = holder()
    process.kill()
    process.communicate()
    assert folder.exists() and folder.parent == temporary
    return folder


def test_nobody_else_can_enter_it_and_it_is_gone_afterwards(temporary: Path) -> None:
    with private_directory() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "scratch").mkdir()
        (folder / "scratch" / "file").touch(mode=0o400)
        (folder / "scratch").chmod(0)  # a script may do so
    assert list(temporary.iterdir()) == []


def test_what_a_killed_run_left_is_removed_by_the_next_and_what_lives_is_not(temporary: Path) -> None:
    living, kept = holder()
    left = stale(temporary)
    with private_directory() as folder:
        assert sorted(temporary.iterdir()) == sorted([kept, folder])
        assert (kept / "request.json").exists()
    assert not left.exists()
    living.communicate("")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["mpdoctor-{me}-abcdefg", "mpdoctor-{me}-abcdefgh.txt", "mpdoctor-{other}-abcdefgh", "mpdoctor-abcdefgh"]
)
def test_what_has_another_name_stays(temporary: Path, name: str) -> None:
    folder = temporary / name.format(me=os.getuid(), other=os.getuid() + 1)
    folder.mkdir()
    with private_directory():
        assert folder.exists()


def test_links_files_and_pipes_of_that_name_stay_and_nothing_behind_a_link_goes(temporary: Path) -> None:
    elsewhere = temporary.parent / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    (elsewhere / "precious").touch()
    name = f"mpdoctor-{os.getuid()}-"
    (temporary / f"{name}aaaaaaaa").symlink_to(elsewhere, target_is_directory=True)
    (temporary / f"{name}bbbbbbbb").touch()
    os.mkfifo(temporary / f"{name}cccccccc")
    inside = stale(temporary)
    (inside / "link").symlink_to(elsewhere, target_is_directory=True)
    with private_directory():
        assert len(list(temporary.iterdir())) == 4
    assert (elsewhere / "precious").exists()
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755


def test_a_run_that_was_replaced_by_a_link_removes_nothing_behind_it(temporary: Path) -> None:
    elsewhere = temporary.parent / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    (elsewhere / "precious").touch()
    with private_directory() as folder:
        folder.rmdir()
        folder.symlink_to(elsewhere, target_is_directory=True)
    assert (elsewhere / "precious").exists()
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_somebody_elses_stays(temporary: Path) -> None:
    folder = temporary / f"mpdoctor-{os.getuid()}-abcdefgh"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with private_directory():
        assert folder.exists()


def test_many_at_once_never_remove_each_others(temporary: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", HURRY], stderr=subprocess.PIPE, text=True) for _ in range(6)]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0] * 6, said
    assert list(temporary.iterdir()) == []
