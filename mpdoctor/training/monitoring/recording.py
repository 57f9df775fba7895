"""Records a training: the run file's rows and events, and TensorBoard's data."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import Any

from mpdoctor.training.monitoring.measuring.measured import Measured, Thinned
from mpdoctor.training.monitoring.run_file import RunFile, as_line, path_of_worker, worker_number
from mpdoctor.training.monitoring.summaries import Summaries
from mpdoctor.training.monitoring.trouble import Trouble
from mpdoctor.training.monitoring.watched_optimizer import WatchedOptimizer
from mpdoctor.training.monitoring.watched_series import WatchedSeries

EXAMINED = "MPDOCTOR_EXAMINES"  # is set where a check runs the script: it watches by itself, and no run is recorded


class Recording:
    """The series that are watched now, and all that were. `is_mute`: nothing is written, nothing is watched."""

    def __init__(self, path: str | os.PathLike[str] | None, log_dir: str | os.PathLike[str] | None, every: int) -> None:
        self._arguments = path, log_dir, every
        self.is_mute = EXAMINED in os.environ
        self.every = every
        self.epoch: int | None = None
        self.series: list[WatchedSeries] = []
        self._is_running = False
        self._known: list[WatchedSeries] = []
        self._summaries = Summaries(None if self.is_mute else log_dir)
        self._file: RunFile | None = None
        self._thinned = Thinned()
        if path is not None and not self.is_mute:
            self._file = RunFile(path_of_worker(path, worker_number()))
            atexit.register(self._file.write_all)  # of a training that raised

    def __reduce__(self) -> Any:
        """A copy has recorded nothing yet: tuners give each trial a copy of its callbacks."""
        return Recording, self._arguments

    @property
    def file(self) -> RunFile | None:
        """The run file; None where none is written, or none any more."""
        return None if self._file is None or self._file.gone else self._file

    @property
    def has_summaries(self) -> bool:
        return self._summaries.are_written

    def start(self, optimizers: list[Any], models: list[Any]) -> None:
        """Start recording: each of these optimizers, which all scale a loss, begins a series or continues its own."""
        if self._file is not None:
            before = _recorded.get(self._file.path.absolute(), self)
            if before is not self:
                before.interrupt()
            _recorded[self._file.path.absolute()] = self
        self._is_running = True
        self.series = [self._series_of(optimizer) for optimizer in optimizers]
        for series in self.series:
            if self._file is not None:
                series.step = self._file.start(series.number, series.start_line(models))
            series.begin()

    def _series_of(self, optimizer: Any) -> WatchedSeries:
        """The series of an optimizer; a new one, unless it was watched before."""
        for series in self._known:
            if series.watched.optimizer is optimizer:
                return series
        self._known.append(WatchedSeries(WatchedOptimizer(optimizer), len(self._known), self.every))
        return self._known[-1]

    def read(self, series: WatchedSeries) -> Trouble | None:
        """The steps since the last reading are written; a trouble that begins with them."""
        seen = series.read()
        if seen is None:
            return None
        row, trouble = seen
        if self._file is not None:
            self._file.steps(series.number, row)
        if row.skipped or row.low != row.high:
            self._summaries.write(series)
        if trouble is None and series.trouble_watch.is_over():
            self.event({"event": "recovered"}, series)
        return trouble

    def measured(self, measured: Measured) -> None:
        """Record a measured step: always for TensorBoard, thinned for the run file, in the first series."""
        self._summaries.write_measured(measured)
        record = measured.in_line()
        if self._thinned.takes(len(as_line(record))):
            self.event({**record, "step": measured.step}, self.series[0])

    def event(self, record: dict[str, Any], series: WatchedSeries) -> None:
        if self._file is not None:
            epoch = {} if self.epoch is None else {"epoch": self.epoch}
            self._file.event({**epoch, **record, "series": series.number, "step": record.get("step", series.step)})

    def end_epoch(self, epoch: int) -> None:
        for series in self.series:
            self.event({"event": "epoch", "epoch": epoch}, series)
            self._summaries.write(series)

    def interrupt(self) -> None:
        """Another one goes on in the same file: what was not read yet stands before it."""
        if self._is_running:
            for series in self.series:
                self.read(series)
            self.end("interrupted")
            self.series = []

    def end(self, how: str) -> None:
        self._is_running = False
        for series in self.series:
            self.event({"event": "end", "how": how}, series)
        self._summaries.flush()


_recorded: dict[Path, Recording] = {}  # the last one that began in each file, of this process
