"""Reads run files. They are data that anybody may have written: only the fields that are listed here are taken, each of
its type and within its limits; whatever else a line holds is passed over, and a line that is none is counted."""

from __future__ import annotations

import dataclasses
import errno
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpdoctor.facts.frozen import dataclass
from mpdoctor.recorded.json_values import magnitude_or_inf, shortened_text, whole_number
from mpdoctor.recorded.measured_parts import MeasuredParts
from mpdoctor.recorded.run_facts import RunEvent, RunSeries, StepsRow

VERSION = 1
LARGEST = 16 << 20  # bytes of a file; ten million steps take 4 MB
LONGEST_LINE = 1 << 16
LONGEST_TEXT = 2000
LONGEST_NAME = 100  # of several in a list
MOST_TEXTS = 8  # in a list
LONGEST_VERSION = 40
MOST_STEPS = 1 << 50
MOST_SERIES = 64
MOST_WORKERS = 256
MOST_EVENTS = 10_000
KINDS = frozenset(("stuck", "collapsing", "skipping", "recovered", "not_measured", "end"))
HEAD = b'{"mpdoctor_run":'
Read = Callable[[Path, int], bytes]  # all of a regular file, or OSError, with EFBIG where it holds more than so much


class NotARunFile(Exception):
    """The bytes are no run file, or one that this mpdoctor does not read. Says so in a sentence without a subject."""


def looks_like_run(head: bytes) -> bool:
    return head.startswith(HEAD)


def series_from_files(path: Path, read: Read) -> tuple[RunSeries, ...]:
    """The series of a run file and of those that other workers wrote beside it. Raises OSError and NotARunFile."""
    runs = [*_series_from_file(path, read)]
    for other in _files_of_other_workers(path)[:MOST_WORKERS]:
        try:
            runs += _series_from_file(other, read)
        except (OSError, NotARunFile):
            continue  # what lies beside it is no part of what was asked for
    return tuple(runs)


def _files_of_other_workers(path: Path) -> list[Path]:
    pattern = re.compile(re.escape(path.stem) + r"\.worker(\d{1,6})" + re.escape(path.suffix))
    numbered = [(match, other) for other in path.parent.iterdir() if (match := pattern.fullmatch(other.name))]
    return [other for _, other in sorted((int(match[1]), other) for match, other in numbered if other.is_file())]


def _series_from_file(path: Path, read: Read) -> tuple[RunSeries, ...]:
    try:
        return series_from_bytes(read(path, LARGEST), path.name)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise NotARunFile(f"is larger than {LARGEST >> 20} MB: no run file is.") from error


def series_from_bytes(content: bytes, name: str) -> tuple[RunSeries, ...]:
    """The series in the bytes of a run file. Raises NotARunFile."""
    if not looks_like_run(content):
        raise NotARunFile("is no run file of mpdoctor.training.LossScaleMonitor.")
    reading = _Reading()
    *lines, cut = content.split(b"\n")
    for line in lines:
        reading.take(line)
    reading.passed_over += bool(cut)
    if not reading.series:
        raise NotARunFile("is no run file that this mpdoctor reads: none of its lines starts a training.")
    return tuple(
        dataclasses.replace(
            series.start,
            file=name,
            rows=tuple(series.rows),
            events=tuple(series.events),
            epochs=tuple(series.epochs),
            passed_over=reading.passed_over,
            measured=series.measured.parts(),
            measured_steps=series.measured.steps,
        )
        for series in reading.series.values()
    )


class _Series:
    def __init__(self, start: RunSeries, step: int) -> None:
        self.start = start
        self.step = step
        self.rows: list[StepsRow] = []
        self.events: list[RunEvent] = []
        self.epochs: list[tuple[int, int]] = []
        self.measured = MeasuredParts()


class _Reading:
    """Reads one run file, line by line."""

    def __init__(self) -> None:
        self.series: dict[int, _Series] = {}
        self.passed_over = 0

    def take(self, line: bytes) -> None:
        if not line:
            return
        try:
            record = json.loads(line) if len(line) <= LONGEST_LINE else None
            taken = self._row(record) if isinstance(record, list) else self._object(record)
        except (ValueError, RecursionError, OverflowError):
            taken = False
        self.passed_over += not taken

    def _object(self, record: object) -> bool:
        if not isinstance(record, dict):
            return False
        row = _Fields(record)
        if "mpdoctor_run" in record:
            return self._start(row)
        number, step = row.whole("series"), row.whole("step")
        series = self.series.get(-1 if number is None else number)
        if series is None or step is None:
            return False
        if record.get("event") == "measured":
            return series.measured.take(step, record)
        return _epoch(row, series, step) if record.get("event") == "epoch" else _event(row, series, step)

    def _start(self, row: _Fields) -> bool:
        number, step, scale = row.whole("series"), row.whole("step"), row.number("initial_scale")
        if row.whole("mpdoctor_run") != VERSION:
            raise NotARunFile(
                f"is a run file of version {row.whole('mpdoctor_run')}; this mpdoctor reads {VERSION} alone."
            )
        if number is None or step is None or scale is None or len(self.series) >= MOST_SERIES:
            return False
        if number in self.series:
            known = self.series[number]
            known.events.append(RunEvent("started", max(step, known.step)))
            known.step = max(step, known.step)
            return True
        start = RunSeries(
            file="",
            number=number,
            model=row.text("model"),
            optimizer=row.texts("optimizer"),
            keras=row.text("keras")[:LONGEST_VERSION],
            tensorflow=row.text("tensorflow")[:LONGEST_VERSION],
            initial_scale=scale,
            is_dynamic=row.told.get("dynamic") is not False,
            worker=row.whole("worker") or 0,
            every=row.whole("every") or 1,
            rows=(),
            growth_interval=row.whole("growth_interval"),
            floor=row.number("floor"),
        )
        self.series[number] = _Series(start, step)
        return True

    def _row(self, row: list[Any]) -> bool:
        """Add the row [series, last step, skipped, scale], and [lowest, highest] where the scale moved. Whether it was
        one."""
        if len(row) not in (4, 6):
            return False
        number, last, skipped = (whole_number(value, MOST_STEPS) for value in row[:3])
        scales = [magnitude_or_inf(value) for value in row[3:]]
        series = self.series.get(-1 if number is None else number)
        if series is None or last is None or skipped is None or None in scales:
            return False
        steps = last - series.step
        if steps < 1 or skipped > steps or last > MOST_STEPS:
            return False
        scale, *ends = [value for value in scales if value is not None]
        low, high = ends or (scale, scale)
        if not low <= scale <= high:
            return False
        series.rows.append(StepsRow(last, steps, skipped, scale, low, high))
        series.step = last
        return True


def _epoch(row: _Fields, series: _Series, step: int) -> bool:
    epoch = row.whole("epoch")
    if epoch is None or step != series.step:
        return False
    series.epochs.append((epoch, step))
    return True


def _event(row: _Fields, series: _Series, step: int) -> bool:
    kind = row.text("event")
    if kind not in KINDS or len(series.events) >= MOST_EVENTS:
        return False
    texts = {name: row.text(name) for name in TEXTS}
    series.events.append(
        RunEvent(kind, step, row.whole("since") or 0, row.whole("epoch"), line=row.whole("line") or 0, **texts)
    )
    return True


TEXTS = ("text", "layer", "layer_class", "variable", "file", "kept", "how", "not_replayed")


@dataclass(frozen=True)
class _Fields:
    """An object of JSON, whose fields are taken by the type that they must have."""

    told: dict[str, Any]

    def whole(self, name: str) -> int | None:
        return whole_number(self.told.get(name), MOST_STEPS)

    def number(self, name: str) -> float | None:
        return magnitude_or_inf(self.told.get(name))

    def text(self, name: str) -> str:
        value = self.told.get(name)
        return shortened_text(value, LONGEST_TEXT) if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        values = self.told.get(name)
        return (
            tuple(shortened_text(v, LONGEST_NAME) for v in values[:MOST_TEXTS] if isinstance(v, str))
            if isinstance(values, list)
            else ()
        )
