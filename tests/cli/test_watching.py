"""`check --static --watch`: what is shown when a file changes, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("watchfiles", reason="the extra mpdoctor[watch] is not installed")
if os.name == "nt":
    pytest.skip("signals and terminals of POSIX", allow_module_level=True)

import pty

ROOT = Path(__file__).parents[2]
PATIENCE = 60  # seconds, on a machine that is busy
CLEAR = "\x1b[2J"
WRONG = """import tensorflow as tf

opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
print(opt.lr)
"""
RIGHT = WRONG.replace("opt.lr", "opt.learning_rate")


def _ctrl_c_ends() -> None:
    """A job in the background of a shell ignores it, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Watched:
    """A check that watches. `terminal`: whether its standard output is one."""

    def __init__(self, directory: Path, *arguments: str, terminal: bool = False) -> None:
        self.out, self.err = directory.parent / "out.txt", directory.parent / "err.txt"
        self.terminal, theirs = pty.openpty() if terminal else (None, None)
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mpdoctor", "check", "--static", "--watch", "--keras=3", *arguments],
                cwd=directory,
                env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(directory.parent / "cache")},
                stdout=theirs if theirs is not None else out,
                stderr=err,
                start_new_session=True,
                preexec_fn=_ctrl_c_ends,
            )

    def looks(self, count: int) -> str:
        """What it has shown, once it has looked so many times."""
        self.wait_for(lambda: self.err.read_text().count("Ctrl-C ends") >= count)
        assert self.err.read_text().count("Ctrl-C ends") == count
        return self.out.read_text()

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline and self.process.poll() is None, self.err.read_text()
            time.sleep(0.05)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "train.py").write_text(WRONG)
    return tmp_path / "project"


def test_a_change_is_looked_at(project: Path) -> None:
    train = project / "src" / "train.py"
    watched = Watched(project, "--output-format=concise", "src")
    try:
        assert watched.looks(1).count("MP301") == 1
        train.write_text(RIGHT)
        assert watched.looks(2).count("MP301") == 1
        (project / "src" / "notes.txt").write_text("of no interest")
        (project / "src" / "another.py").write_text(WRONG)
        shown = watched.looks(3)
        assert shown.count("MP301") == 2 and "src/another.py:4" in shown
        written = train.with_name("train.py.new")
        written.write_text(WRONG)
        written.replace(train)  # as many editors do
        assert watched.looks(4).count("MP301") == 4
        assert CLEAR not in watched.out.read_text()
    finally:
        status = watched.end()
    assert status == 130
    assert "interrupted" not in watched.err.read_text() and "Traceback" not in watched.err.read_text()


def test_one_file_is_watched_with_what_lies_beside_it(project: Path) -> None:
    watched = Watched(project / "src", "--output-format=concise", "train.py")
    try:
        assert watched.looks(1).count("MP301") == 1
        (project / "src" / "pyproject.toml").write_text('[tool.mpdoctor]\nignore = ["MP301"]\n')
        assert watched.looks(2).count("MP301") == 1
        (project / "src" / "pyproject.toml").write_text("[tool.mpdoctor]\nselct = []\n")
        watched.looks(3)
        assert "selct" in watched.err.read_text()
    finally:
        status = watched.end(signal.SIGTERM)
    assert status == -signal.SIGTERM


def test_what_a_file_imports_is_watched_wherever_it_lies(project: Path) -> None:
    """Also what it imports only since it was changed."""
    made, _, _ = WRONG.partition("print")
    for folder in ("first", "second"):
        (project / folder).mkdir()
        (project / folder / "made.py").write_text("opt = None\n")
    train = project / "train.py"
    train.write_text("from first.made import opt\nprint(opt.lr)\n")
    watched = Watched(project, "--output-format=concise", "train.py")
    try:
        assert watched.looks(1).count("MP301") == 0
        (project / "first" / "made.py").write_text(made)
        assert watched.looks(2).count("MP301") == 1
        train.write_text("from second.made import opt\nprint(opt.lr)\n")
        assert watched.looks(3).count("MP301") == 1
        time.sleep(1.0)  # until it watches the other folder
        (project / "second" / "made.py").write_text(made)
        assert watched.looks(4).count("MP301") == 2
    finally:
        status = watched.end()
    assert status == 130


@pytest.mark.parametrize("target", ["src/train.py", "src"])
def test_a_folder_that_goes_and_comes_back_is_watched_again(project: Path, target: str) -> None:
    """As by a checkout of another branch."""
    watched = Watched(project, "--output-format=concise", target)
    try:
        watched.looks(1)
        (project / "src").rename(project / "kept")
        watched.wait_for(lambda: "no such file" in watched.err.read_text())
        time.sleep(1.0)  # until it watches the folder above
        (project / "kept").rename(project / "src")
        watched.wait_for(lambda: watched.out.read_text().count("MP301") >= 2)
        time.sleep(1.0)  # until it watches the new folder
        (project / "src" / "train.py").write_text(WRONG.replace("opt.lr", "opt.lr, 'x'"))
        before = watched.out.read_text().count("MP301")
        watched.wait_for(lambda: watched.out.read_text().count("MP301") > before)
    finally:
        status = watched.end()
    assert status == 130


def test_a_terminal_is_cleared_before_each_look(project: Path) -> None:
    watched = Watched(project, "src", terminal=True)
    assert watched.terminal is not None
    try:
        watched.looks(1)
        shown = os.read(watched.terminal, 100_000).decode()
    finally:
        watched.end()
    assert shown.startswith(CLEAR) and "MP301" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["src"], "--watch needs --static"),
        (["--static", "--fix", "src"], "changes no files"),
        (["--static", "-"], "standard input can only be read once"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: list[str], told: str, project: Path) -> None:
    command = [sys.executable, "-m", "mpdoctor", "check", "--watch", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "") and told in done.stderr


def test_without_the_extra_it_says_what_to_install(project: Path) -> None:
    program = (
        "import sys, importlib.util as util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'watchfiles' else find(name, *rest)\n"
        "import mpdoctor.cli; mpdoctor.cli.main(['check', '--static', '--watch', 'src'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert done.stderr == "mpdoctor: --watch needs watchfiles: pip install 'mpdoctor[watch]'.\n"
