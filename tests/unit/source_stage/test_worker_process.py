"""Workers of the source stage end with the process that started them, however that one ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

START = """
import multiprocessing, time
from mpdoctor.source.prefilter import Outlines
from mpdoctor.source_stage.worker import WorkerInput
from mpdoctor.source_stage.worker_process import WorkerProcess

workers = [WorkerProcess(WorkerInput({}, {}, Outlines())) for _ in range(3)]
print(*(child.pid for child in multiprocessing.active_children()), flush=True)
time.sleep(60)
"""


def runs(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_workers_of_a_killed_process_end() -> None:
    first = subprocess.Popen([sys.executable, "-c", START], stdout=subprocess.PIPE, text=True)
    with first:
        assert first.stdout is not None
        workers = first.stdout.readline().split()
        assert len(workers) == 3 and all(map(runs, workers))
        first.send_signal(signal.SIGKILL)
    end = time.monotonic() + 30
    while any(map(runs, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(runs, workers))
