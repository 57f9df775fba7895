"""The run file: one line for many steps of a training, so that ten million of them take less than 5 MB.

Lines are only ever appended, and each ends in a line feed: of a job that was killed, the last one may be cut, and the
others stand. docs/monitor.md says what they hold; `mpdoctor show` reads them and runs nothing.
"""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

from mpdoctor.training.monitoring.users_line import warn_of_training

VERSION = 1
ROWS_BEFORE_COARSER = 16_384
SECONDS_UNTIL_WRITTEN = 30.0
TAIL = 1 << 16  # bytes from the end in which the last row of an earlier start is looked for


class Row:
    """Steps in a row: how many of them were skipped, the loss scale after the last, the least and the largest."""

    def __init__(self, steps: int, skipped: int, scale: float, low: float, high: float) -> None:
        self.steps, self.skipped, self.scale, self.low, self.high = steps, skipped, scale, low, high

    def takes(self, other: Row, span: int) -> bool:
        """Whether both can stand in one line: nothing happened in either, or together they are within `span`."""
        quiet = not self.skipped and not other.skipped and self.low == other.low == self.high == other.high
        return quiet or self.steps + other.steps <= span or self._is_like(other)

    def _is_like(self, other: Row) -> bool:
        """Whether both skipped every step, at one scale."""
        all_skipped = self.skipped == self.steps and other.skipped == other.steps
        return all_skipped and self.low == other.low == self.high == other.high

    def add(self, other: Row) -> None:
        self.steps += other.steps
        self.skipped += other.skipped
        self.scale = other.scale
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)


class Series:
    """The steps of one optimizer: rows wait here until something changes."""

    def __init__(self, number: int, step: int) -> None:
        self.number, self.step = number, step
        self.waiting: Row | None = None
        self.rows, self.span = 0, 1

    def line(self) -> str:
        """The waiting row, which is then no more."""
        row = self.waiting
        assert row is not None
        self.waiting = None
        self.step += row.steps
        self.rows += 1
        if self.rows % ROWS_BEFORE_COARSER == 0:
            self.span = max(2 * self.span, 64)
        fields: list[Any] = [self.number, self.step, row.skipped, number_in_json(row.scale)]
        if not row.low == row.high == row.scale:
            fields += [number_in_json(row.low), number_in_json(row.high)]
        return as_line(fields)


class RunFile:
    """Appends to one file. An error of the file system is told once and ends the writing, never the training."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.gone = ""
        self._series: dict[int, Series] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _steps_in(self.path)
        except OSError as error:
            self._end(error)
        self._written_at = time.monotonic()

    def start(self, number: int, fields: dict[str, Any]) -> int:
        """A series begins; the number of the step before its first. It is 0, or what an earlier start has reached."""
        step = self._series[number].step if number in self._series else self._steps_before().get(number, 0)
        self._series[number] = Series(number, step)
        self._append(as_line({"mpdoctor_run": VERSION, "series": number, "step": step, **fields}))
        return step

    def _steps_before(self) -> dict[int, int]:
        if not self.gone:
            try:
                return _steps_in(self.path)
            except OSError as error:
                self._end(error)
        return {}

    def steps(self, number: int, row: Row) -> None:
        series = self._series[number]
        if series.waiting is not None and series.waiting.takes(row, series.span):
            series.waiting.add(row)
        else:
            self._write_waiting(series)
            series.waiting = row
        if time.monotonic() - self._written_at > SECONDS_UNTIL_WRITTEN:
            self.write_all()

    def event(self, record: dict[str, Any]) -> None:
        """Whatever waits stands before it."""
        self.write_all()
        self._append(as_line(record))

    def write_all(self) -> None:
        for series in self._series.values():
            self._write_waiting(series)
        self._written_at = time.monotonic()

    def _write_waiting(self, series: Series) -> None:
        if series.waiting is not None:
            self._append(series.line())

    def _append(self, line: str) -> None:
        if self.gone:
            return
        try:
            with self.path.open("ab+") as file:
                file.seek(0, os.SEEK_END)
                at = file.tell()
                if at:
                    file.seek(at - 1)
                    if file.read(1) != b"\n":  # a job was killed within a line
                        line = "\n" + line
                file.write(line.encode("ascii"))
        except OSError as error:
            self._end(error)

    def _end(self, error: OSError) -> None:
        self.gone = error.strerror or type(error).__name__
        warn_of_training(f"The run file {self.path} cannot be written ({self.gone}): the training goes on without it.")


def as_line(record: Any) -> str:
    return json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"


def number_in_json(number: float) -> float | int | str:
    """Short: 32768, not 32768.0; what JSON has no number for is "inf", "-inf" or "nan"."""
    if math.isnan(number) or math.isinf(number):
        return str(number)
    return int(number) if number == int(number) and abs(number) < 1e15 else number


def path_of_worker(path: str | os.PathLike[str], worker: int) -> Path:
    """run.mpdoctor is the first worker's; the others write beside it: run.worker1.mpdoctor."""
    first = Path(path).expanduser()
    return first if worker == 0 else first.with_name(f"{first.stem}.worker{worker}{first.suffix}")


def worker_number() -> int:
    """The number of this process among the workers of TF_CONFIG; 0 for the chief or a single process."""
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task, cluster = config.get("task") or {}, config.get("cluster") or {}
        index = int(task.get("index", 0))
        return index + 1 if task.get("type") == "worker" and {"chief", "master"} & set(cluster) else index
    except (ValueError, AttributeError, TypeError):
        return 0


def _steps_in(path: Path) -> dict[int, int]:
    """The last step that an earlier start has written, by series. Raises ValueError where the file is no run file."""
    if path.exists() and not path.is_file():  # a pipe would wait for a reader
        raise ValueError(f"{path} is a folder, or something else that is no file: give LossScaleMonitor another path.")
    try:
        with path.open("rb") as file:
            head = file.read(64)
            file.seek(max(0, path.stat().st_size - TAIL))
            tail = file.read(TAIL)
    except FileNotFoundError:
        return {}
    if head and not head.startswith(b'{"mpdoctor_run":'):
        raise ValueError(f"{path} exists and is no run file: give LossScaleMonitor another path.")
    reached: dict[int, int] = {}
    for line in tail.split(b"\n"):
        row = _row_in(line)
        if row is not None:
            reached[row[0]] = row[1]
    return reached


def _row_in(line: bytes) -> tuple[int, int] | None:
    """(series, last step) of a row or of a start; None for any other line."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if isinstance(fields, dict) and "mpdoctor_run" in fields:
        fields = [fields.get("series"), fields.get("step")]
    if isinstance(fields, list) and len(fields) >= 2 and all(type(number) is int for number in fields[:2]):
        return fields[0], fields[1]
    return None
