"""The examiner as a process: started, listened to, and ended with all that it started."""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from mpdoctor.examination.shown_output import Shown
from mpdoctor.examiner.process.supervisor import PATIENCE, is_supervised

START = Path(__file__).parents[1] / "examiner" / "start.py"
LAST_WORDS = 40  # lines of its output that are kept
LONGEST_LAST_WORDS = 2000
# Loggers that would open a connection of their own during the few steps that we train.
QUIET = {
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "MPLBACKEND": "Agg",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}
# LossScaleMonitor of a script that is examined watches and writes nothing: the run file is of the training itself.
EXAMINED = {"MPDOCTOR_EXAMINES": "1"}


class ExaminerProcess:
    """The examiner's process. Its output is drained, and only the end of it is kept; stderr is kept whole where a file
    `stderr` is given. All output is also written to the stream `shown` as it comes. The process ends when this one
    does, however that ends."""

    def __init__(
        self,
        python: Path,
        request: Path,
        environment: Mapping[str, str],
        stderr: Path | None = None,
        shown: Shown | None = None,
    ) -> None:
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [str(python), str(START), str(request)],
            env={**QUIET, **environment, **EXAMINED},
            # a keeper waits for the end of it
            stdin=subprocess.PIPE if is_supervised() else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._errors: collections.deque[bytes] = collections.deque(maxlen=LAST_WORDS)
        self._printed: collections.deque[bytes] = collections.deque(
            maxlen=LAST_WORDS
        )  # stdout and stderr, as they came
        assert self._process.stdout is not None and self._process.stderr is not None
        self._drains = [
            threading.Thread(target=self._drain, args=(*drained, shown), daemon=True)
            for drained in (
                (self._process.stdout, [self._printed], None),
                (self._process.stderr, [self._printed, self._errors], stderr),
            )
        ]
        for drain in self._drains:
            drain.start()

    @staticmethod
    def _drain(stream: IO[bytes], kept: list[collections.deque[bytes]], path: Path | None, shown: Shown | None) -> None:
        with contextlib.nullcontext() if path is None else path.open("wb", buffering=0) as file:
            while chunk := stream.readline(65536):
                for lines in kept:
                    lines.append(chunk)
                if file is not None:
                    file.write(chunk)
                if shown is not None:
                    with contextlib.suppress(OSError, ValueError):  # it was closed
                        shown.write(chunk)
                        shown.flush()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def signal_and_exit_code(self) -> tuple[int | None, int | None]:
        """(signal, exit code) of the process that was started, or of its supervisor where it has one. One of both is
        None."""
        code = self._process.poll()
        return (-code, None) if code is not None and code < 0 else (None, code)

    def end(self) -> None:
        """End it and whatever it started."""
        if self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE + 1)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        for drain in self._drains:
            drain.join(1)

    def last_words(self) -> str:
        """The end of stderr, without TensorFlow's own log lines."""
        return _output_text(self._errors)

    def last_printed(self) -> str:
        """The end of stdout and stderr together, without TensorFlow's own log lines."""
        return _output_text(self._printed)


def _output_text(chunks: Iterable[bytes]) -> str:
    lines = b"".join(chunks).decode("utf-8", "replace").splitlines()
    return "\n".join(line for line in lines if line.strip() and not _is_log_line(line))[-LONGEST_LAST_WORDS:]


def _is_log_line(line: str) -> bool:
    head = line.split(" ", 1)[0]
    return (
        line.startswith(("To enable the following instructions", "WARNING: All log messages before absl"))
        or (len(head) == 5 and head[0] in "IWE" and head[1:].isdigit())
        or " tensorflow/" in line[:60]
        or " external/" in line[:60]
    )
