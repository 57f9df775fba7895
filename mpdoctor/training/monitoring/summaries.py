"""Loss scale, skipped steps and what was measured, for TensorBoard, in the format of its scalars and histograms: where
the training runs it need not be installed."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterator

import tensorflow as tf

from mpdoctor.training.monitoring.measuring.measured import Measured, MeasuredPart
from mpdoctor.training.monitoring.users_line import warn_of_training
from mpdoctor.training.monitoring.watched_series import WatchedSeries

ABOUT_EXPONENTS = "Elements by power of 2; float16 ends at 16, has fewer digits below -14, and nothing below -24."
SCALAR, TENSOR = 1, 2  # classes of data, which say what TensorBoard may do with it


def kind_of_summary(plugin: str, data_class: int, description: str = "") -> Any:
    """What says of a summary which part of TensorBoard shows it."""
    message = tf.compat.v1.SummaryMetadata
    shown_by = message.PluginData(plugin_name=plugin)
    return message(plugin_data=shown_by, data_class=data_class, summary_description=description)


class Summaries:
    """Scalars and histograms in a log directory; nothing without one. An error of the file system is told once and ends
    the writing, never the training."""

    def __init__(self, log_dir: str | os.PathLike[str] | None) -> None:
        self._writer: Any = None
        self._log_dir = "" if log_dir is None else os.fspath(log_dir)
        if log_dir is not None:
            with self._warning_once():
                self._writer = tf.summary.create_file_writer(self._log_dir)
        self._scalar = kind_of_summary("scalars", SCALAR)
        self._histogram = kind_of_summary("histograms", TENSOR, ABOUT_EXPONENTS)

    @property
    def are_written(self) -> bool:
        return self._writer is not None

    @contextlib.contextmanager
    def _warning_once(self) -> Iterator[None]:
        try:
            yield
        except tf.errors.OpError as error:
            self._writer = None
            why = str(error.message).strip().splitlines()[0]
            warn_of_training(
                f"Nothing more is written to the log directory {self._log_dir} ({why}): the training goes on without."
            )

    def write(self, series: WatchedSeries) -> None:
        """Write the loss scale and skipped steps; the names of all but the first optimizer end in its number."""
        if self._writer is None:
            return
        of = f"_{series.number}" if series.number else ""
        with self._warning_once(), self._writer.as_default():
            self._write_number(f"loss_scale{of}", series.scale, series.step)
            self._write_number(f"skipped_steps{of}", series.skipped, series.step)

    def write_measured(self, measured: Measured) -> None:
        if self._writer is None:
            return
        with self._warning_once(), self._writer.as_default():
            for kind, parts in (("activations", measured.layers), ("gradients", measured.gradients)):
                for part in parts:
                    for quantity in ("largest", "not_finite", "zero", "subnormal"):
                        self._write_number(f"{kind}_{quantity}/{part.name}", getattr(part, quantity), measured.step)
                    self._write_exponents(f"{kind}_exponents/{part.name}", part, measured.step)

    def _write_number(self, tag: str, number: float, step: int) -> None:
        tf.summary.write(tag, tf.constant(number, tf.float32), step=step, metadata=self._scalar)

    def _write_exponents(self, tag: str, part: MeasuredPart, step: int) -> None:
        """A row of left edge, right edge and count for each bucket."""
        if part.exponents:
            buckets = [(exponent, exponent + 1, count) for exponent, count in part.exponents]
            tf.summary.write(tag, tf.constant(buckets, tf.float64), step=step, metadata=self._histogram)

    def flush(self) -> None:
        if self._writer is not None:
            with self._warning_once():
                self._writer.flush()
