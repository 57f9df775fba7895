"""Loss scale, skipped steps and what was measured, for TensorBoard."""

from __future__ import annotations

import importlib.util
import os

import tensorflow as tf

from mpdoctor.training.monitoring.measuring.measured import Measured
from mpdoctor.training.monitoring.watched_series import WatchedSeries


class Summaries:
    """Scalars in a log directory; nothing without one. ImportError where TensorBoard, which makes them, is not
    installed."""

    def __init__(self, log_dir: str | os.PathLike[str] | None) -> None:
        self._writer = None
        if log_dir is None:
            return
        if importlib.util.find_spec("tensorboard") is None:
            raise ImportError("log_dir needs TensorBoard, which is not installed: pip install tensorboard.")
        self._writer = tf.summary.create_file_writer(os.fspath(log_dir))

    def write(self, series: WatchedSeries) -> None:
        """Of the first optimizer, and with its number of each other one."""
        if self._writer is None:
            return
        of = f"_{series.number}" if series.number else ""
        with self._writer.as_default():
            tf.summary.scalar(f"loss_scale{of}", series.scale, step=series.step)
            tf.summary.scalar(f"skipped_steps{of}", series.skipped, step=series.step)

    def write_measured(self, measured: Measured) -> None:
        if self._writer is None:
            return
        with self._writer.as_default():
            for kind, parts in (("activations", measured.layers), ("gradients", measured.gradients)):
                for part in parts:
                    for what in ("largest", "not_finite", "zero", "subnormal"):
                        tf.summary.scalar(f"{kind}_{what}/{part.name}", getattr(part, what), step=measured.step)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()
