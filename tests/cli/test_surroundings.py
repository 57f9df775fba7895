"""Missing resources (working directory, temporary directory, open files): every command says so in one sentence."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from checking import needs_tensorflow

WRONG = "import tensorflow as tf\nopt = tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())\n"
MPDOCTOR = "from mpdoctor.cli import main; main()"
WITHOUT_TEMPORARY = "import tempfile; tempfile._candidate_tempdir_list = lambda: ['/nowhere']; "
GONE, TEMPORARY, FILES = "the working directory does not exist", "no directory for temporary files", "no more files"
FULL = "there is no space left"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(WRONG)
    (tmp_path / "saved.json").write_text(run("check --static src/a.py --output-format json", tmp_path).stdout)
    assert json.loads((tmp_path / "saved.json").read_text())["findings"]
    return tmp_path


def run(
    arguments: str, directory: Path, *, launcher: str = MPDOCTOR, before: str = ":"
) -> subprocess.CompletedProcess[str]:
    """`before`: what the shell does first, in that directory."""
    command = f"{before}; exec {shlex.quote(sys.executable)} -P -c {shlex.quote(launcher)} {arguments}"
    if sys.version_info < (3, 11):
        command = command.replace(" -P -c", " -c")
    return subprocess.run(
        ["bash", "-c", command], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100
    )


def assert_says(done: subprocess.CompletedProcess[str], sentence: str, status: int = 2) -> None:
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert done.stderr.startswith(f"mpdoctor: {sentence}" if sentence else "")
    assert done.stderr.count("\n") == bool(sentence)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("check --static {project}/src", 2),
        ("check --static {project}/src/a.py", 2),
        ("check {project}/src/a.py", 2),
        ("check - --static", 2),
        ("env", 2),
        ("rules", 0),
        ("explain MP101", 0),
        ("show {project}/saved.json", 1),
        ("--help", 0),
    ],
)
def test_a_working_directory_that_was_removed(project: Path, arguments: str, status: int) -> None:
    (project / "gone").mkdir()
    done = run(arguments.format(project=project), project / "gone", before="rmdir ../gone")
    assert_says(done, GONE if status == 2 else "", status)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("check --static src", 1),
        ("rules", 0),
        ("explain MP101", 0),
        ("show saved.json", 1),
        pytest.param("check src/a.py", 2, marks=needs_tensorflow),
        pytest.param("env", 2, marks=needs_tensorflow),
    ],
)
def test_no_temporary_directory(project: Path, arguments: str, status: int) -> None:
    done = run(arguments, project, launcher=WITHOUT_TEMPORARY + MPDOCTOR)
    assert_says(done, TEMPORARY if status == 2 else "", status)


@pytest.mark.parametrize("limit", [5, *(pytest.param(limit, marks=pytest.mark.slow) for limit in (8, 11))])
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("check --static src/a.py", 1),
        ("rules", 0),
        ("explain MP101", 0),
        ("show saved.json", 1),
        pytest.param("check src/a.py", 2, marks=needs_tensorflow),
        pytest.param("env", 2, marks=needs_tensorflow),
    ],
)
def test_hardly_a_file_may_be_opened(project: Path, arguments: str, status: int, limit: int) -> None:
    done = run(arguments, project, before=f"ulimit -n {limit}")
    assert_says(done, FILES if status == 2 else "", status)
    assert f"may open {limit})" in done.stderr or status != 2 or limit == 5


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one core, and so one process")
def test_too_few_files_for_several_processes(project: Path) -> None:
    lines = "".join(f"x{number} = tf.cast({number}, 'float16')\n" for number in range(40_000))
    (project / "src" / "b.py").write_text(WRONG + lines)
    assert_says(run("check --static --no-cache src", project, before="ulimit -n 6"), FILES)


@needs_tensorflow
def test_a_full_disk(project: Path) -> None:
    full = "import tempfile, errno\ndef refuse(*given, **named): raise OSError(errno.ENOSPC, 'full', '/tmp/x')\n"
    done = run("check src/a.py", project, launcher=f"{full}tempfile.mkdtemp = refuse\n{MPDOCTOR}")
    assert_says(done, f"{FULL} to write /tmp/x")


def test_a_defect_of_ours_is_no_refusal(project: Path) -> None:
    broken = (
        "import mpdoctor.project.targets as t\ndef broken(*given): open('/no/such/file')\nt.with_its_files = broken\n"
    )
    done = run("check --static src", project, launcher=broken + MPDOCTOR)
    assert (done.returncode, "Please report" in done.stderr) == (3, True)
