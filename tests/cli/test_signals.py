"""A run that is ended by a signal leaves nothing behind: no file, no process, no hidden cursor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_processes import processes_with

from mpdoctor.cli.progress import TerminalProgress

if os.name == "nt":
    pytest.skip("signals and terminals of POSIX", allow_module_level=True)

import pty
import resource

PATIENCE = 60  # seconds, on a machine that is busy
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
# A child that leaves the process group, so that only what looks for it can end it.
SCRIPT = """\
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
open("ready", "w").close()
time.sleep(300)
"""


class Run:
    """A check whose script waits, before a terminal."""

    def __init__(self, directory: Path, python: Path, ignored: tuple[int, ...] = ()) -> None:
        (directory / "train.py").write_text(SCRIPT)
        self.temporary = directory / "temporary"
        self.temporary.mkdir(exist_ok=True)
        self.token = uuid.uuid4().hex
        self.terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mpdoctor", "check", "train.py", "--python", str(python), "--", "--password=x"],
            cwd=directory,
            env={**os.environ, "TOKEN": self.token, "TMPDIR": str(self.temporary), "TERM": "xterm"},
            stdout=subprocess.PIPE,
            stderr=theirs,
            preexec_fn=lambda: _prepare(ignored),
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = b""
        deadline = time.monotonic() + PATIENCE
        while not (directory / "ready").exists() or HIDE not in self.shown:
            assert time.monotonic() < deadline and self.process.poll() is None, self.shown
            self._look()
        (directory / "ready").unlink()

    def _look(self) -> bool:
        with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
            more = os.read(self.terminal, 65536)
            self.shown += more
            return bool(more)
        return False

    def ended(self) -> int:
        """Its status, after whatever it showed to its end and the end of its processes."""
        while self._look():
            pass
        status = self.process.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while processes_with(self.token) and time.monotonic() < deadline:
            time.sleep(0.05)
        return status

    def left(self) -> list[str]:
        return [path.name for path in self.temporary.iterdir()]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self.terminal)


def _prepare(ignored: tuple[int, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # SIGQUIT asks for a core
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)


@pytest.fixture
def start(tmp_path: Path, claiming: Path) -> Iterator[object]:
    with contextlib.ExitStack() as runs:

        def started(**options: object) -> Run:
            run = Run(tmp_path, claiming, **options)  # type: ignore[arg-type]
            runs.callback(run.close)
            return run

        yield started


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGHUP, -signal.SIGHUP),
        (signal.SIGQUIT, -signal.SIGQUIT),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_nothing_is_left_and_the_shell_sees_the_signal(start, number: int, status: int) -> None:
    run = start()
    assert len(run.left()) == 1
    run.process.send_signal(number)
    assert run.ended() == status
    assert run.left() == []
    assert processes_with(run.token) == []
    assert run.shown.rfind(SHOW) > run.shown.rfind(HIDE)
    assert b"Traceback" not in run.shown


def test_a_second_signal_does_not_interrupt_the_cleaning_up(start) -> None:
    run = start()
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT) * 5:
        run.process.send_signal(number)
        time.sleep(0.002)
    # 130, or by a SIGINT that came when all was cleaned up
    assert run.ended() in (-signal.SIGHUP, -signal.SIGTERM, -signal.SIGINT, 130)
    assert run.left() == []
    assert run.shown.rfind(SHOW) > run.shown.rfind(HIDE)


def test_what_was_to_be_ignored_is(start) -> None:
    """As nohup does with a hangup."""
    run = start(ignored=(signal.SIGHUP,))
    run.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGTERM)
    assert run.ended() == -signal.SIGTERM


def test_what_a_killed_run_left_goes_with_the_next(start) -> None:
    killed = start()
    killed.process.kill()
    assert killed.ended() == -signal.SIGKILL
    left = killed.left()
    assert len(left) == 1
    following = start()
    assert len(following.left()) == 1 and following.left() != left
    following.process.terminate()
    following.ended()
    assert following.left() == []


def test_the_name_of_a_stage_commands_no_terminal() -> None:
    progress = TerminalProgress()
    try:
        progress.stage("loading \x1b]0;gotcha\x07\nx.keras")
        assert progress.bars.tasks[0].description == "loading \\x1b]0;gotcha\\x07\\nx.keras"
    finally:
        progress.close()
