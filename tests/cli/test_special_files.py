"""Files that are named and are none: pipes, devices, directories, links in a circle, files of a terabyte. Each is told
in one sentence, and nothing waits for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_cli import run

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
PLACES = ("pipe", "device", "directory", "circle", "sparse")
READ = {
    "show": ["show", "FILE"],
    "from-run": ["check", "--from-run", "FILE", "train.py"],
    "baseline": ["check", "--static", "--baseline", "FILE", "train.py"],
    "config": ["check", "--static", "--config", "FILE", "train.py"],
}
WRITTEN = {
    "report": ["check", "--static", "--report", "FILE", "train.py"],
    "write-baseline": ["check", "--static", "--write-baseline", "FILE", "train.py"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import tensorflow\n", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "device.json").symlink_to("/dev/zero")
    (tmp_path / "directory.json").mkdir()
    (tmp_path / "circle.json").symlink_to("circle.json")
    (tmp_path / "sparse.json").touch()
    os.truncate(tmp_path / "sparse.json", 1 << 40)
    return tmp_path


@pytest.mark.parametrize("command", READ)
@pytest.mark.parametrize("place", PLACES)
def test_only_a_regular_file_is_read(project: Path, command: str, place: str) -> None:
    arguments = [f"{place}.json" if word == "FILE" else word for word in READ[command]]
    done = run(*arguments, cwd=project)
    assert done.returncode == 2, done.stderr
    assert f"{place}.json" in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 3


@pytest.mark.parametrize("command", WRITTEN)
@pytest.mark.parametrize("place", ["pipe", "directory", "circle"])
def test_nothing_waits_for_who_reads_a_pipe(project: Path, command: str, place: str) -> None:
    arguments = [f"{place}.json" if word == "FILE" else word for word in WRITTEN[command]]
    done = run(*arguments, cwd=project)
    told = "that is a directory" if (command, place) == ("report", "directory") else "could not be written"
    assert done.returncode == 2 and told in done.stderr


def test_a_link_that_leads_nowhere_is_not_told_to_be_missing(project: Path) -> None:
    (project / "nowhere.py").symlink_to("gone.py")
    for name in ("nowhere.py", "circle.json"):
        told = run("check", "--static", name, cwd=project).stderr
        assert "a link that leads to no file" in " ".join(told.split()) and "Did you mean" not in told


@pytest.mark.parametrize("command", WRITTEN)
def test_nothing_is_written_through_a_link_that_a_project_brings(project: Path, command: str) -> None:
    repository = project / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "train.py").write_text("import tensorflow\n", encoding="utf-8")
    kept = project / "kept"
    kept.write_text("of the user", encoding="utf-8")
    (repository / "known.json").symlink_to(kept)
    arguments = ["known.json" if word == "FILE" else word for word in WRITTEN[command]]
    done = run(*arguments, cwd=repository)
    assert done.returncode == 2 and "known.json could not be written: it is a link that leads out" in done.stderr
    assert kept.read_text(encoding="utf-8") == "of the user"
    # one within the project, and one of the user's own
    (repository / "reports").mkdir()
    for link, to in ((repository / "known.json", repository / "reports/a.json"), (project / "mine.json", kept)):
        link.unlink(missing_ok=True)
        link.symlink_to(to)
        named = [str(link) if word == "known.json" else word for word in arguments]
        assert run(*named, cwd=repository).returncode == 0
        assert to.read_text(encoding="utf-8").startswith("{")
