"""Hostile scripts, fixtures/hostile: whatever one does, the check ends in time with the right exit status and what was
seen until then, leaves no process behind, and changes no file.

A script says at its head what must come: `exit`, the `code` of its finding and what that `says`, on which `line`
("here" for the one marked so), the `verdict` of its training, how many `models` were seen, what it
`skips`; how long it may take (`timeout`); what it `removes`; whether it needs a real TensorFlow. It is given the path
of a file for the numbers of processes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from checking import check, contents, needs_tensorflow
from live_processes import is_running, processes_with

HOSTILE = Path(__file__).parents[2] / "fixtures" / "hostile"
QUICK = ("leaves", "daemon", "daemon_that_outlives_the_time", "closes_all_descriptors", "removes_the_examination")
PATIENCE = 60  # seconds beyond the time-out, on a machine that is busy

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="this system has no /proc to look for orphans"
)


def marks_of(text: str) -> dict[str, str]:
    return dict(re.findall(r"^# (\w+): (.+)$", text, re.MULTILINE))


def cases() -> list[object]:
    found = []
    for path in sorted(HOSTILE.glob("*.py")):
        marks = [] if path.stem in QUICK else [pytest.mark.slow, pytest.mark.sampled(24)]
        if marks_of(path.read_text()).get("python") == "tensorflow":
            marks.append(needs_tensorflow)
        found.append(pytest.param(path, id=path.stem, marks=marks))
    return found


@pytest.mark.parametrize("path", cases())
def test_nothing_breaks(path: Path, tmp_path: Path, claiming: Path) -> None:
    text = path.read_text()
    marks = marks_of(text)
    project, started_processes = tmp_path / "project", tmp_path / "processes"
    project.mkdir()
    (tmp_path / "temporary").mkdir()
    shutil.copy(path, project)
    (project / "precious.txt").write_text("mine")
    before = contents(project)
    token = uuid.uuid4().hex
    options = ["--timeout", marks.get("timeout", "200"), "--steps", "12"]
    if marks.get("python") != "tensorflow":
        options += ["--python", str(claiming)]
    started = time.monotonic()
    done = check(
        path.name,
        *options,
        "--",
        str(started_processes),
        directory=project,
        environment={"TOKEN": token, "TMPDIR": str(tmp_path / "temporary")},
    )
    took = time.monotonic() - started

    assert done.exit_code == int(marks["exit"]), done
    report = done.report
    assert not report["crashed"], done
    if "code" in marks:
        finding = done.finding(marks["code"])
        assert marks.get("says", "") in finding["message"], finding["message"]
        if "line" in marks:
            assert text.splitlines()[finding["line"] - 1].endswith("# line"), finding
    else:
        assert not [finding for finding in report["findings"] if finding["severity"] == "error"], done
    if "verdict" in marks:
        assert [probe["verdict"] for probe in report["probes"]] == [marks["verdict"]], done
    if "models" in marks:
        assert len(report["models"]) == int(marks["models"]), done
    assert [skip["code"] for skip in report["skipped"] if skip["code"] == "record"] == marks.get("skips", "").split()
    if "timeout" in marks:
        assert took < int(marks["timeout"]) + PATIENCE

    expected = {name: kept for name, kept in before.items() if marks.get("removes") != "itself" or name != path.name}
    assert contents(project) == expected
    assert not list((tmp_path / "temporary").glob("mpdoctor-*"))
    known = [int(number) for number in started_processes.read_text().split()] if started_processes.exists() else []
    assert [pid for pid in known if is_running(pid)] == []
    assert [pid for pid in processes_with(token) if is_running(pid)] == []
    if "sys.argv[1]" in text and path.stem != "loads_data_in_processes":
        assert known, "the script started no process"


def test_what_mpdoctor_started_ends_when_it_is_killed(tmp_path: Path, claiming: Path) -> None:
    """As a CI job is that is cancelled."""
    (tmp_path / "train.py").write_text("import time\ntime.sleep(300)\n")
    token = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, "-m", "mpdoctor", "check", "train.py", "--python", str(claiming)],
        cwd=tmp_path,
        env={**os.environ, "TOKEN": token},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + PATIENCE
    while len(processes_with(token)) < 3 and time.monotonic() < deadline:  # itself, the keeper, the examiner
        time.sleep(0.1)
    process.kill()
    process.wait()
    while processes_with(token) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_with(token) == []


UNMOUNT = 'mount -t tmpfs none /proc && exec "$@"'
NO_PROCFS = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", UNMOUNT, "sh"]


@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*NO_PROCFS, "true"], capture_output=True).returncode != 0,
    reason="this system lets nobody take /proc away",
)
def test_nothing_outlives_the_time_where_there_is_no_procfs(tmp_path: Path, claiming: Path) -> None:
    shutil.copy(HOSTILE / "daemon_that_outlives_the_time.py", tmp_path / "train.py")
    options = ["--timeout", "2", "--python", str(claiming), "--", str(tmp_path / "processes")]
    command = [*NO_PROCFS, sys.executable, "-m", "mpdoctor", "check", "train.py", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert "MP003" in done.stdout and done.returncode == 2, done
    (child,) = map(int, (tmp_path / "processes").read_text().split())
    assert not is_running(child)


# Process numbers of their own, whose last ones the script may use up; then the first ones come again.
OWN_NUMBERS = """
cat /proc/sys/kernel/pid_max >highest_number
touch last_number
mount --bind /proc/sys/kernel/ns_last_pid last_number
echo 10000 >last_number
mount -t tmpfs none /proc
"$@"
for child in $(cat processes); do kill -0 "$child" && echo "$child outlived the time"; done
exit 0
"""
OWN = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount", "--mount-proc", "sh", "-c"]


@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*OWN, "true"], capture_output=True).returncode != 0,
    reason="this system lets nobody number processes",
)
def test_nothing_outlives_the_time_where_the_numbers_of_processes_begin_again(tmp_path: Path, claiming: Path) -> None:
    """Four million numbers, tried one by one, took longer than mpdoctor waits for what it ends."""
    text = (HOSTILE / "daemon_that_outlives_the_time.py").read_text()
    used_up = 'open("last_number", "w").write(open("highest_number").read())'
    (tmp_path / "train.py").write_text(text.replace("\ntime.sleep(300)", f"\n{used_up}\ntime.sleep(300)"))
    options = ["--timeout", "2", "--python", str(claiming), "--", "processes"]
    command = [*OWN, OWN_NUMBERS, "sh", sys.executable, "-m", "mpdoctor", "check", "train.py", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert "MP003" in done.stdout, done
    assert (tmp_path / "processes").read_text().strip()
    assert "outlived" not in done.stdout, done
