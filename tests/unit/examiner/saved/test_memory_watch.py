"""The examination of a saved file ends in words once it takes more memory than files of its size do."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from checking import ROOT

from mpdoctor.examiner.process import memory
from mpdoctor.examiner.targets import saved_model

HUNGRY = """
import os
from mpdoctor.examiner.process.memory import watch_memory
watch_memory({most}, lambda: os._exit(7))
held = []
for _ in range(200):
    held.append(bytearray(b"x" * 4_000_000))
    sum(range(40_000))
"""


@pytest.mark.skipif(memory.resident() is None and memory.resident_peak() is None, reason="this system does not tell")
@pytest.mark.parametrize(("most", "status"), [(300 * 10**6, 7), (3 * 10**9, 0)])
def test_a_process_that_takes_more_is_ended(most: int, status: int) -> None:
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", HUNGRY.format(most=most)], env=surroundings, timeout=60)
    assert done.returncode == status


@pytest.mark.fast
@pytest.mark.parametrize("is_directory", [False, True])
@pytest.mark.parametrize("left", [None, 64 * 2**30, 16 * 2**30])
def test_what_is_said_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_directory: bool, left: int | None
) -> None:
    path = tmp_path / "model"
    if is_directory:
        (path / "variables").mkdir(parents=True)
        (path / "variables" / "data").write_bytes(b"x" * 2**20)
    else:
        path.write_bytes(b"x" * 2**20)
    limits: list[int] = []
    told: list[Any] = []

    def at_once(most: int, end: Any) -> None:
        limits.append(most)
        end()

    monkeypatch.setattr(saved_model, "watch_memory", at_once)
    monkeypatch.setattr(saved_model, "left_on_machine", lambda: left)
    monkeypatch.setattr(saved_model.os, "_exit", lambda status: told.append(status))
    events = SimpleNamespace(end=lambda: told.append("end"))
    session: Any = SimpleNamespace(
        request=SimpleNamespace(path=str(path)), fail=lambda facts: told.append(facts), events=events
    )
    saved_model.end_beyond_memory(session)
    failure, *rest = told
    assert rest == ["end", 0] and failure.kind == "unusable"
    if left == 16 * 2**30:
        assert limits == [15 * 2**30]
        assert failure.message == (
            "model was given up: it took more than 15.0 GiB of memory, which is nearly all that this machine had left. "
            "Examine it on a larger one."
        )
        return
    assert limits == [24 * 2**30 + 16 * 2**20]
    assert failure.message == (
        "model was given up: it took more than 24.0 GiB of memory, which is the most that mpdoctor takes for a file of "
        "1,048,576 bytes. Examine the script that trains the model."
    )


@pytest.mark.fast
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("MemTotal: 9 kB\nMemAvailable:  3 kB\nSwapFree: 1 kB\n", 4096),
        ("MemTotal: 9 kB\n", None),
        ("MemAvailable:\nSwapFree: x kB\n", None),
        ("nothing", None),
    ],
)
def test_what_the_machine_has_left(monkeypatch: pytest.MonkeyPatch, text: str, left: int | None) -> None:
    monkeypatch.setattr(memory, "open", lambda *_, **__: io.StringIO(text), raising=False)
    assert memory.left_on_machine() == left
