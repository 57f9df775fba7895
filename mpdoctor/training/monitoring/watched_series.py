"""The steps of one optimizer between readings: rows for the run file, and trouble if there is any."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf

from mpdoctor.training.monitoring.between_readings import extremes
from mpdoctor.training.monitoring.run_file import SECONDS_UNTIL_WRITTEN, Row, number_in_json, worker_number
from mpdoctor.training.monitoring.trouble import Trouble, TroubleWatch
from mpdoctor.training.monitoring.watched_optimizer import WatchedOptimizer

CLOSER = 100  # steps that are read one by one after a skipped one


class WatchedSeries:
    """`every`: steps between two readings. For `CLOSER` steps after a skipped one each step is read, since it matters
    which of them were skipped."""

    def __init__(self, watched: WatchedOptimizer, number: int, every: int) -> None:
        self.watched, self.number, self.every = watched, number, every
        self.step, self.skipped = 0, 0
        self.trouble_watch = TroubleWatch(watched.floor, watched.is_dynamic)
        self._unread, self._closer = 0, 0
        self.begin()

    def begin(self) -> None:
        """Begin to count steps from a new reading: a checkpoint may have been loaded since the last one."""
        self._unread, self.reading = 0, self.watched.read()
        self._read_at = time.monotonic()
        self._until = self._steps_until_reading()

    def _steps_until_reading(self) -> int:
        steps = self.watched.steps_until_reading(self.reading)
        return self.every if steps is None else min(self.every, steps)

    @property
    def scale(self) -> float:
        return self.reading.scale

    @property
    def taken(self) -> int:
        """Steps, with those that were not read yet."""
        return self.step + self._unread

    def count(self, steps: int) -> bool:
        """Count further steps; whether it is time to read."""
        self._unread += steps
        if self._unread >= self._until or self._closer > 0:
            return True
        return time.monotonic() - self._read_at > SECONDS_UNTIL_WRITTEN  # of slow steps a killed job leaves as many

    def read(self) -> tuple[Row, Trouble | None] | None:
        """The steps since the last reading; None where there were none."""
        steps, self._unread, self._read_at = self._unread, 0, time.monotonic()
        if not steps:
            return None
        before, now = self.reading, self.watched.read()
        self.reading = now
        self._until = self._steps_until_reading()
        skipped = self.watched.skipped(steps, before, now)
        self.step += steps
        self.skipped += skipped
        if skipped and self.trouble_watch.trouble is None:
            self._closer = CLOSER
        else:
            self._closer = max(self._closer - steps, 0)
        low, high = extremes(before.scale, now.scale, self.watched.halvings(steps, skipped, before, now))
        row = Row(steps, skipped, now.scale, low, high)
        return row, self.trouble_watch.after(self.step, row)

    def start_line(self, models: list[Any]) -> dict[str, Any]:
        """The line that the run file has for the start of a series."""
        watched = self.watched
        return {
            "started": int(time.time()),
            "keras": watched.keras(),
            "tensorflow": str(tf.__version__),
            "optimizer": watched.names(),
            "model": str(getattr(models[0], "name", "")) if models else "",
            "initial_scale": number_in_json(watched.initial_scale),
            "scale": number_in_json(watched.read().scale),
            "growth_interval": watched.growth_interval,
            "floor": watched.floor,
            "dynamic": watched.is_dynamic,
            "every": self.every,
            "worker": worker_number(),
        }
