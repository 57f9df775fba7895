"""`mpdoctor.training` in two workers on this machine: tests/support/live_two_workers.py, once for each of them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from environments import ENVIRONMENTS, Environment, needs_environment

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "live_two_workers.py"
# [weight, scale] after each of four steps; in the third one the second worker's gradient alone is NaN.
STEPS = [[0.625, 16.0], [0.25, 16.0], [0.25, 8.0], [-0.125, 8.0]]
# weights, scale and skipped steps after a fit in which the second worker's last batch alone is NaN
FIT = [[0.125], 8.0, [1]]


def free_addresses(count: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("localhost", 0))
        return [f"localhost:{free.getsockname()[1]}" for free in sockets]


def trained(environment: Environment, folder: Path) -> list[dict[str, Any]]:
    """What each worker found."""
    cluster = {"worker": free_addresses(2)}
    legacy = "1" if environment.keras == "tf_keras" else "0"
    workers = []
    for index in range(2):
        config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        told = {"TF_CONFIG": config, "PYTHONPATH": str(ROOT), "TF_USE_LEGACY_KERAS": legacy}
        command = [str(environment.python or sys.executable), str(SCRIPT), str(folder)]
        with (folder / f"errors_{index}").open("w") as errors:
            started = subprocess.Popen(
                command, env={**os.environ, **told}, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        workers.append(started)
    outputs = [worker.communicate()[0] for worker in workers]
    errors_of_both = "\n".join((folder / f"errors_{index}").read_text()[-2000:] for index in range(2))
    assert [worker.returncode for worker in workers] == [0, 0], errors_of_both
    return [json.loads(output.splitlines()[-1]) for output in outputs]


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(
            environment,
            marks=[
                needs_environment(environment),
                pytest.mark.environments if environment.python else pytest.mark.slow,
            ],
            id=environment.keras,
        )
        for environment in ENVIRONMENTS
    ],
)
def test_workers_skip_a_step_together_and_go_on(environment: Environment, tmp_path: Path) -> None:
    expected = {"workers": 2, "graph": STEPS, "eager": STEPS}
    if environment.keras != "3":
        expected["fit"] = FIT
    assert trained(environment, tmp_path) == [expected, expected]
    runs = {path.name for path in tmp_path.glob("*.mpdoctor")}
    assert runs == (set() if environment.keras == "3" else {"run.mpdoctor", "run.worker1.mpdoctor"})
